// Text that cannot be guessed: letters and digits, each as likely as the others.

const LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";

export function randomLetters(length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length * 2))) {
      // Bytes above the last whole multiple would make some letters likelier.
      if (byte < 252 && text.length < length) text += LETTERS[byte % LETTERS.length];
    }
  }
  return text;
}
