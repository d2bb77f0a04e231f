// Buttons, and a choice of one or some of a few.

import type { ComponentChildren } from "preact";

interface ButtonProps {
  onClick(): void;
  kind?: "plain" | "main" | "danger" | "small";
  /** For screen readers, where the text alone does not say what it is about. */
  label?: string | undefined;
  isDisabled?: boolean;
  isPressed?: boolean;
  children: ComponentChildren;
}

export function Button({ onClick, kind = "plain", label, isDisabled = false, isPressed, children }: ButtonProps) {
  return (
    <button
      type="button"
      class={kind}
      onClick={onClick}
      disabled={isDisabled}
      aria-label={label}
      aria-pressed={isPressed}
    >
      {children}
    </button>
  );
}

export type ChoiceOption = readonly [value: string, text: string];

interface ChoiceProps {
  label: string;
  options: readonly ChoiceOption[];
  /** One value, or several. */
  chosen: string | readonly string[];
  choose(value: string): void;
}

/** Buttons side by side. */
export function Choice({ label, options, chosen, choose }: ChoiceProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out in a row of buttons everywhere
    <div class="choice" role="group" aria-label={label}>
      {options.map(([value, text]) => (
        <Button
          key={value}
          kind="small"
          isPressed={typeof chosen === "string" ? value === chosen : chosen.includes(value)}
          onClick={() => choose(value)}
        >
          {text}
        </Button>
      ))}
    </div>
  );
}
