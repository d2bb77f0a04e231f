// Forward proxies of the environment (HTTP_PROXY and the like), which fetch honours by itself.

/** True if the environment names a proxy for some requests. */
export function hasForwardProxy(env: Record<string, string | undefined>): boolean {
  return ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"].some((name) => env[name]);
}

/** A forward proxy leads to the world outside; this machine's engines are not behind it. To be called before any fetch. */
export function keepLoopbackFromProxies(env: Record<string, string | undefined>): void {
  const exceptions = [env.NO_PROXY ?? env.no_proxy, "127.0.0.1", "localhost", "::1"].filter(Boolean).join(",");
  env.NO_PROXY = exceptions;
  env.no_proxy = exceptions;
}
