// The table of presets: vendors and engines that speak OpenAI's API, one row each, from which all else that is known of them follows.

/** What differs at a vendor in requests of the chat format; undefined members: as OpenAI has it. */
export interface VendorRules {
  /** The only member for the most output tokens is max_tokens. */
  oldLimit?: true;
  /** Members of a request that are refused with an error. */
  refused?: readonly string[];
  /** Members that models of such names refuse besides. */
  refusedOf?: readonly [models: RegExp, members: readonly string[]];
  /** Members of messages that are refused. */
  refusedInMessages?: readonly string[];
  /** Members of a request that have another name. */
  renamed?: Readonly<Record<string, string>>;
  /** How much of tool_choice is honoured (protocols/chat/tools.ts); default: a tool can be named. */
  toolChoice?: "named-or-auto" | "auto" | "only-auto";
  /** The only member of messages for earlier thoughts, "none" where they are refused; default: either, and others besides. */
  thoughts?: "reasoning" | "reasoning_content" | "none";
  /** Each earlier answer must have its thoughts, also where they are not known. */
  wantsThoughts?: true;
  /** Thinking is switched off by a member of its own, not by the effort "none". */
  thinkingSwitch?: true;
  /** Lists of texts are refused as the content of a message. */
  plainText?: true;
  /** json_object is known, json_schema is refused. */
  noSchemas?: true;
  /** Ids of tool calls must be nine letters and digits, and those that it gives are unique. */
  shortCallIds?: true;
  /** What an engine takes besides text and pictures; hosted vendors refuse by themselves what they do not take. */
  media?: readonly ("audio" | "video")[];
  /** Fetches no pictures by their address. */
  noLinks?: true;
  /** By the names of models, the first match counts: no effort is known, or some have another name (generation/reasoning-effort.ts). */
  efforts?: readonly (readonly [
    models: RegExp,
    rules: { unsupported?: true; changes: Readonly<Partial<Record<PresetEffort, PresetEffort>>> },
  ])[];
  /** Takes the nested form of reasoning in chat requests. */
  nestedReasoning?: true;
}

type PresetEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | "auto";

export type PresetOperation =
  | "chat"
  | "completions"
  | "embeddings"
  | "images"
  | "moderations"
  | "rerank"
  | "speech"
  | "transcriptions"
  | "translations";

export interface Preset {
  /** Other accepted spellings. */
  spellings?: readonly string[];
  /** The base URL that its documentation gives for OpenAI's SDKs. */
  url?: string;
  /** Instead of it where the base URL holds an account: what it looks like. */
  urlForm?: string;
  /** The beginning of the base URL's path that some of its operations do not have. */
  mount?: string;
  /** The variable of the environment in which its documentation keeps the key; undefined: an engine that needs none. */
  key?: string;
  /** The zero configuration takes the key of the environment (no others do: clouds' keys stand for more than models). */
  isFound?: true;
  /** What it is asked for, by the usual path behind its base URL. */
  serves: readonly PresetOperation[];
  /** Paths from the root of the server, where they are not the usual ones. */
  paths?: Readonly<Partial<Record<PresetOperation, string>>>;
  /** Where it lists its models, from the root of the server; default: /models behind the base URL; false: nowhere. */
  list?: string | false;
  /** The path of its health from the root of the server; default: its list of models. */
  health?: string;
  /** Its name in the conventions of OpenTelemetry, where they spell it otherwise. */
  provider?: string;
  /** The owned_by in its own model list which no other server writes. */
  ownerSign?: string;
  /** It goes on behind the last words of the assistant when it is asked to as vLLM is. */
  continues?: true;
  chat?: VendorRules;
}

const UP_TO_HIGH = { max: "high", xhigh: "high", auto: "medium" } as const;
const NO_EFFORT = { unsupported: true, changes: {} } as const;
/** What clients of other vendors send back in the messages of earlier answers. */
const FOREIGN = ["name", "refusal", "annotations", "audio", "function_call"] as const;

/**
 * In the order in which the zero configuration adds them. Sources: the packages @ai-sdk/<name> (groq 3.0.71, mistral 3.0.69,
 * deepseek 2.0.69, xai 3.0.138, moonshotai 2.0.61, perplexity 3.0.61), the vendors' SDKs (groq-sdk 1.6.0, @mistralai/mistralai
 * 2.7.0, mistral_common 1.13.1, together-ai 0.52.0, cohere-ai 8.1.0), litellm 1.110.2 (llms/<name>), and the pages named in the rows.
 */
export const PRESETS = {
  // Groq, "OpenAI Compatibility": these members are answered with 400; unknown ones of messages, too.
  groq: {
    url: "https://api.groq.com/openai/v1",
    key: "GROQ_API_KEY",
    isFound: true,
    serves: ["chat", "embeddings", "speech", "transcriptions", "translations"],
    chat: {
      refused: ["logprobs", "top_logprobs", "logit_bias", "top_k", "prompt_cache_key", "verbosity", "store"],
      refusedInMessages: FOREIGN,
      thoughts: "reasoning",
      efforts: [
        [/gpt-oss/, { changes: { ...UP_TO_HIGH, none: "low", minimal: "low" } }],
        [/^/, { changes: UP_TO_HIGH }],
      ],
    },
  },
  // ChatCompletionRequest of @mistralai/mistralai: other members are 422 (extra_forbidden); counts come with every stream.
  mistral: {
    spellings: ["mistralai"],
    url: "https://api.mistral.ai/v1",
    key: "MISTRAL_API_KEY",
    isFound: true,
    serves: ["chat", "embeddings", "moderations", "transcriptions"],
    provider: "mistral_ai",
    chat: {
      oldLimit: true,
      renamed: { seed: "random_seed" },
      refused: ["stream_options", "user", "logprobs", "top_logprobs", "logit_bias", "top_k", "store", "verbosity"],
      refusedInMessages: FOREIGN,
      thoughts: "none",
      shortCallIds: true,
      efforts: [
        [/magistral/, NO_EFFORT],
        [/^/, { changes: UP_TO_HIGH }],
      ],
    },
  },
  // api-docs.deepseek.com/guides/thinking_mode: answers with calls must come back with their reasoning_content.
  deepseek: {
    url: "https://api.deepseek.com/v1",
    key: "DEEPSEEK_API_KEY",
    isFound: true,
    serves: ["chat"],
    chat: {
      oldLimit: true,
      plainText: true,
      noSchemas: true,
      thoughts: "reasoning_content",
      wantsThoughts: true,
      thinkingSwitch: true,
      efforts: [[/^/, { changes: { auto: "high" } }]],
    },
  },
  // docs.x.ai/docs/guides/reasoning: errors for these members, and for the effort at most models.
  xai: {
    spellings: ["x.ai", "grok"],
    url: "https://api.x.ai/v1",
    key: "XAI_API_KEY",
    isFound: true,
    serves: ["chat", "images"],
    provider: "x_ai",
    chat: {
      refused: ["presence_penalty", "frequency_penalty", "top_k", "prompt_cache_key"],
      refusedOf: [/^(?!.*non-reasoning)/, ["stop"]],
      refusedInMessages: FOREIGN,
      thoughts: "none",
      efforts: [
        [/^grok-(?:3(?!-mini)|4(?:-|$|\.20)|code|build)/, NO_EFFORT],
        [/^/, { changes: { ...UP_TO_HIGH, minimal: "low" } }],
      ],
    },
  },
  openrouter: {
    url: "https://openrouter.ai/api/v1",
    key: "OPENROUTER_API_KEY",
    isFound: true,
    serves: ["chat", "completions", "embeddings"],
    chat: { nestedReasoning: true },
  },
  together: {
    spellings: ["together_ai", "togetherai"],
    url: "https://api.together.ai/v1",
    key: "TOGETHER_API_KEY",
    serves: ["chat", "completions", "embeddings", "images", "rerank", "speech", "transcriptions", "translations"],
    chat: { oldLimit: true },
  },
  fireworks: {
    spellings: ["fireworks_ai"],
    url: "https://api.fireworks.ai/inference/v1",
    key: "FIREWORKS_API_KEY",
    serves: ["chat", "completions", "embeddings", "rerank"],
  },
  // inference-docs.cerebras.ai/resources/openai: these members are answered with 400.
  cerebras: {
    url: "https://api.cerebras.ai/v1",
    key: "CEREBRAS_API_KEY",
    serves: ["chat", "completions"],
    chat: {
      refused: ["frequency_penalty", "presence_penalty", "logit_bias", "parallel_tool_calls", "service_tier", "top_k"],
      refusedInMessages: FOREIGN,
      thoughts: "reasoning",
      efforts: [[/^/, { changes: { ...UP_TO_HIGH, minimal: "low" } }]],
    },
  },
  // It has no list of models and no /v1; the counts come with every stream.
  perplexity: {
    url: "https://api.perplexity.ai",
    key: "PERPLEXITY_API_KEY",
    serves: ["chat"],
    list: false,
    chat: {
      refused: ["stream_options", "stop", "seed", "logit_bias", "parallel_tool_calls"],
      refusedInMessages: FOREIGN,
      thoughts: "none",
    },
  },
  // docs.cohere.com/docs/compatibility-api; its rerank and its list are not part of the compatible API.
  cohere: {
    spellings: ["cohere_chat"],
    url: "https://api.cohere.ai/compatibility/v1",
    mount: "/compatibility",
    key: "COHERE_API_KEY",
    serves: ["chat", "embeddings", "rerank"],
    paths: { rerank: "/v2/rerank" },
    list: "/v1/models?page_size=1000",
    chat: {
      oldLimit: true,
      refused: ["logit_bias", "parallel_tool_calls", "top_k", "user", "store", "prompt_cache_key", "verbosity"],
      refusedInMessages: FOREIGN,
      thoughts: "none",
      efforts: [[/^/, { changes: { ...UP_TO_HIGH, minimal: "high", low: "high", medium: "high", auto: "high" } }]],
    },
  },
  nvidia: {
    spellings: ["nvidia_nim", "nim"],
    url: "https://integrate.api.nvidia.com/v1",
    key: "NVIDIA_API_KEY",
    serves: ["chat", "completions", "embeddings"],
    chat: { oldLimit: true },
  },
  huggingface: {
    spellings: ["hf"],
    url: "https://router.huggingface.co/v1",
    key: "HF_TOKEN",
    serves: ["chat"],
    chat: { oldLimit: true },
  },
  // docs.github.com/rest/models: the catalogue is beside the inference.
  github: {
    spellings: ["github-models"],
    url: "https://models.github.ai/inference",
    mount: "/inference",
    key: "GITHUB_TOKEN",
    serves: ["chat", "embeddings"],
    list: "/catalog/models",
    chat: { thoughts: "none" },
  },
  // developers.cloudflare.com/workers-ai/configuration/open-ai-compatibility.
  cloudflare: {
    spellings: ["workers-ai"],
    urlForm: "https://api.cloudflare.com/client/v4/accounts/ACCOUNT_ID/ai/v1",
    key: "CLOUDFLARE_API_TOKEN",
    serves: ["chat", "embeddings"],
    list: false,
    health: "/models/search?per_page=1",
    chat: { oldLimit: true },
  },
  // deepinfra.com/docs/advanced/function_calling: auto and none are the only words.
  deepinfra: {
    url: "https://api.deepinfra.com/v1/openai",
    key: "DEEPINFRA_API_KEY",
    serves: ["chat", "completions", "embeddings", "images", "speech", "transcriptions"],
    chat: { oldLimit: true, toolChoice: "auto" },
  },
  // platform.moonshot.ai/docs/api/chat; K2.6 and K2.7 refuse tool_choice "required", and only K3 knows efforts.
  moonshot: {
    spellings: ["moonshotai", "kimi"],
    url: "https://api.moonshot.ai/v1",
    key: "MOONSHOT_API_KEY",
    serves: ["chat"],
    chat: {
      refused: ["top_k", "seed", "logit_bias", "parallel_tool_calls"],
      toolChoice: "named-or-auto",
      thoughts: "reasoning_content",
      noLinks: true,
      efforts: [
        [/^kimi-k3/, { changes: { minimal: "low", medium: "high", xhigh: "max", auto: "high" } }],
        [/^/, NO_EFFORT],
      ],
    },
  },
  // docs.z.ai/guides/capabilities/thinking-mode, and the GLM formatter of agentscope-extensions-model-openai, which names what is
  // refused; the version of the API is v4, and counts come with every stream.
  zai: {
    spellings: ["z.ai", "zhipu"],
    url: "https://api.z.ai/api/paas/v4",
    key: "ZAI_API_KEY",
    serves: ["chat"],
    chat: {
      oldLimit: true,
      refused: ["frequency_penalty", "presence_penalty", "stream_options"],
      refusedInMessages: ["name"],
      toolChoice: "only-auto",
      noSchemas: true,
      thoughts: "reasoning_content",
      thinkingSwitch: true,
      efforts: [
        [/^glm-5\.[2-9]/, { changes: { minimal: "low", medium: "high", xhigh: "max", auto: "high" } }],
        [/^/, { changes: UP_TO_HIGH }],
      ],
    },
  },
  sglang: {
    url: "http://127.0.0.1:30000/v1",
    serves: ["chat", "completions", "embeddings", "rerank", "images", "transcriptions"],
    health: "/health",
    ownerSign: "sglang",
    continues: true,
    chat: { media: ["audio", "video"] },
  },
  tgi: {
    spellings: ["text-generation-inference"],
    url: "http://127.0.0.1:3000/v1",
    serves: ["chat", "completions"],
    health: "/health",
    chat: { oldLimit: true },
  },
  // mlx_lm.server reads no tool_choice.
  mlx: {
    spellings: ["mlx-lm", "mlx_lm"],
    url: "http://127.0.0.1:8080/v1",
    serves: ["chat", "completions"],
    chat: { toolChoice: "auto" },
  },
  llamafile: {
    url: "http://127.0.0.1:8080/v1",
    serves: ["chat", "completions", "embeddings"],
    health: "/health",
    chat: { oldLimit: true },
  },
  localai: {
    spellings: ["local-ai"],
    url: "http://127.0.0.1:8080/v1",
    serves: ["chat", "completions", "embeddings", "images", "rerank", "speech", "transcriptions"],
    health: "/readyz",
    chat: { oldLimit: true },
  },
  koboldcpp: {
    spellings: ["kobold"],
    url: "http://127.0.0.1:5001/v1",
    serves: ["chat", "completions", "embeddings", "images", "speech", "transcriptions"],
    ownerSign: "koboldcpp",
    chat: { oldLimit: true, noLinks: true },
  },
  docker: {
    spellings: ["docker-model-runner"],
    url: "http://127.0.0.1:12434/engines/v1",
    serves: ["chat", "completions", "embeddings"],
    ownerSign: "docker",
    chat: { oldLimit: true },
  },
  // jan.ai/docs/local-api: its settings want a key, which api_key repeats.
  jan: {
    url: "http://127.0.0.1:1337/v1",
    serves: ["chat"],
    chat: { oldLimit: true },
  },
} as const satisfies Record<string, Preset>;

export type PresetName = keyof typeof PRESETS;
