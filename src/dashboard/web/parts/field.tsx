// Fields with their labels: a line, a text, one of many.

import type { TargetedEvent } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { ChoiceOption } from "./button.tsx";

interface FieldProps {
  id: string;
  label: string;
  value: string;
  set(value: string): void;
}

interface LineProps extends FieldProps {
  type?: "text" | "password" | "number";
  placeholder?: string;
  min?: number;
  max?: number;
  step?: number | "any";
  /** Names to choose from; others are allowed. */
  list?: readonly string[];
  autocomplete?: string;
  isRequired?: boolean;
  /** The keyboard is here when it appears. */
  isFirst?: boolean;
}

export function Field({ id, label, value, set, ...more }: LineProps) {
  const { type = "text", list, autocomplete = "off", isRequired = false, isFirst = false, ...attributes } = more;
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (isFirst) input.current?.focus();
  }, [isFirst]);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        {...attributes}
        {...(list !== undefined && { list: `${id}-list` })}
        ref={input}
        id={id}
        // The types of Preact have a form of the attributes for each type of input.
        type={type as "text"}
        value={value}
        onInput={(event) => set(event.currentTarget.value)}
        autocomplete={autocomplete as "off"}
        spellcheck={false}
        required={isRequired}
      />
      {list !== undefined && (
        <datalist id={`${id}-list`}>
          {list.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
    </div>
  );
}

interface SelectProps extends FieldProps {
  options: readonly ChoiceOption[];
}

export function Select({ id, label, value, set, options }: SelectProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value}
        onChange={(event: TargetedEvent<HTMLSelectElement>) => set(event.currentTarget.value)}
      >
        {options.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

interface AreaProps extends FieldProps {
  rows: number;
}

export function Area({ id, label, value, set, rows }: AreaProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea id={id} rows={rows} value={value} onInput={(event) => set(event.currentTarget.value)} />
    </div>
  );
}
