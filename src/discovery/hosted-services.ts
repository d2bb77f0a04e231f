// Hosted services that speak OpenAI's API and have no type of their own, with the variables that their keys are kept in.

interface HostedService {
  name: string;
  keyVariable: string;
  /** The base URL that the service's documentation gives for SDKs. */
  url: string;
}

/** Keys of clouds (AWS, Google) stand for a whole account and start nothing: they count where they are configured. */
export const HOSTED_SERVICES: readonly HostedService[] = [
  { name: "groq", keyVariable: "GROQ_API_KEY", url: "https://api.groq.com/openai/v1" },
  { name: "mistral", keyVariable: "MISTRAL_API_KEY", url: "https://api.mistral.ai/v1" },
  { name: "deepseek", keyVariable: "DEEPSEEK_API_KEY", url: "https://api.deepseek.com/v1" },
  { name: "xai", keyVariable: "XAI_API_KEY", url: "https://api.x.ai/v1" },
  { name: "openrouter", keyVariable: "OPENROUTER_API_KEY", url: "https://openrouter.ai/api/v1" },
];
