// Masks what looks like a secret in a text that is kept: backends quote keys, and clients write them into the wrong place.

export function withoutSecrets(text: string): string {
  return text
    .replaceAll(/\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi, "$1 ***")
    .replaceAll(/\b((sk|pk|rk)[-_]|ghp_|gho_|xox[a-z]-|AIza|AKIA)[\w*-]{8,}/g, "***")
    .replaceAll(/\b(key|api)[-_](?=[\w*-]*\d)[\w*-]{8,}/g, "***")
    .replaceAll(/([?&](?:key|api[_-]?key|token|access_token)=)[^&\s"']+/gi, "$1***")
    .replaceAll(/\/\/[^/@\s]+@/g, "//***@");
}
