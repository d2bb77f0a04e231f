// One field of a form that is made from a schema: its label, its control, its help, and what is wrong with it.

import { useSignal } from "@preact/signals";
import type { ComponentChildren, TargetedEvent } from "preact";
import { Button } from "../parts/button.tsx";
import { defaultText, type FormField, namesIn } from "../schema-form.ts";

interface FormFieldProps {
  field: FormField;
  text: string;
  /** What the field held before it was typed into. */
  before: string;
  set(text: string): void;
  isFixed: boolean;
  faults: readonly string[];
}

/** How a text is written, where that is not seen. */
const WRITTEN: Partial<Record<FormField["kind"], string>> = { names: "Separated by commas.", json: "As JSON." };

const FEWEST_ROWS = 3;
const MOST_ROWS = 16;
const LONG_ROWS = 18;

export function FormFieldRow(props: FormFieldProps) {
  const { field, text, set } = props;
  if (field.kind === "choices") return <Choices {...props} />;
  if (field.kind === "flag" && field.byDefault !== undefined) {
    return (
      <div class="field">
        <label class="check-line">
          <input
            type="checkbox"
            {...describedBy(props)}
            checked={text === "true"}
            onChange={(event) => set(String(event.currentTarget.checked))}
          />{" "}
          {field.label}
        </label>
        <Notes {...props} />
      </div>
    );
  }
  return (
    <div class="field">
      <label for={idOf(field)}>
        {field.label}
        {field.isRequired && <span class="faint"> (required)</span>}
      </label>
      <Control {...props} />
      <Notes {...props} />
    </div>
  );
}

export function idOf({ path }: FormField): string {
  return `field-${path}`;
}

function describedBy({ field, faults, isFixed }: FormFieldProps) {
  const notes = [
    (field.help !== undefined || isFixed || WRITTEN[field.kind] !== undefined) && "help",
    faults.length > 0 && "fault",
  ].filter(Boolean);
  return {
    id: idOf(field),
    "aria-describedby": notes.map((note) => `${idOf(field)}-${note}`).join(" ") || undefined,
    "aria-invalid": faults.length > 0 ? true : undefined,
  };
}

function Notes({ field, faults, isFixed }: FormFieldProps) {
  const help = [field.help, WRITTEN[field.kind], isFixed && "It cannot be changed; a copy can have another."].filter(
    Boolean,
  );
  return (
    <>
      {help.length > 0 && (
        <p class="help" id={`${idOf(field)}-help`}>
          {help.join(" ")}
        </p>
      )}
      {faults.length > 0 && (
        <p class="fault" id={`${idOf(field)}-fault`}>
          {faults.join(" ")}
        </p>
      )}
    </>
  );
}

function Control(props: FormFieldProps) {
  const { field, text, set, isFixed } = props;
  const { kind } = field;
  const usual = defaultText(field);
  const shared = {
    ...describedBy(props),
    onInput: (event: TargetedEvent<HTMLInputElement | HTMLTextAreaElement>) => set(event.currentTarget.value),
    spellcheck: false,
    required: field.isRequired,
  };
  if (kind === "secret") return <Secret {...props} />;
  if (kind === "choice" || kind === "flag") {
    const known = kind === "flag" ? ["true", "false"] : field.options.filter((option) => option !== field.byDefault);
    // An entry may have a name in another spelling.
    const options = text === "" || known.includes(text) ? known : [...known, text];
    return (
      <select {...describedBy(props)} value={text} onChange={(event) => set(event.currentTarget.value)}>
        <option value="">{usual === "" ? "Not set" : `${usual} (default)`}</option>
        {options.map((option) => (
          <option key={option} value={option}>
            {kind === "flag" ? (option === "true" ? "Yes" : "No") : option}
          </option>
        ))}
      </select>
    );
  }
  if (kind === "json" || kind === "long") {
    const lines = text.split("\n").length + 1;
    const rows = kind === "long" ? LONG_ROWS : Math.max(FEWEST_ROWS, Math.min(MOST_ROWS, lines));
    return <textarea {...shared} class="editor" rows={rows} value={text} placeholder={usual || undefined} />;
  }
  return (
    <input
      {...shared}
      // The types of Preact have a form of the attributes for each type of input.
      type={(kind === "number" ? "number" : kind === "time" ? "datetime-local" : "text") as "text"}
      step={kind === "time" ? 1 : kind === "number" && !field.isWhole ? "any" : undefined}
      min={field.minimum}
      max={field.maximum}
      value={text}
      readOnly={isFixed}
      placeholder={usual || undefined}
      autocomplete="off"
    />
  );
}

/** Never shows what is in force: left empty, that stays. */
function Secret(props: FormFieldProps) {
  const { field, text, before, set } = props;
  const isShown = useSignal(false);
  const isKept = before !== "" && text === before;
  const isRemoved = before !== "" && text === "";
  return (
    <div class="secret">
      <input
        {...describedBy(props)}
        type={(isShown.value ? "text" : "password") as "text"}
        value={isKept ? "" : text}
        onInput={(event) => set(event.currentTarget.value || before)}
        placeholder={isRemoved ? "Will be removed" : isKept ? "Set; stays while this is empty" : undefined}
        autocomplete="new-password"
        spellcheck={false}
      />
      <Button
        kind="small"
        label={`${isShown.value ? "Hide" : "Show"} ${field.label}`}
        isPressed={isShown.value}
        onClick={() => {
          isShown.value = !isShown.value;
        }}
      >
        Show
      </Button>
      {before !== "" && !field.isRequired && (
        <Button
          kind="small"
          label={`${isRemoved ? "Keep" : "Remove"} ${field.label}`}
          onClick={() => set(isRemoved ? before : "")}
        >
          {isRemoved ? "Keep" : "Remove"}
        </Button>
      )}
    </div>
  );
}

function Choices(props: FormFieldProps) {
  const { field, text, set } = props;
  const chosen = namesIn(text);
  // The order is that of the schema; a name in another spelling stays.
  const all = [...field.options, ...chosen.filter((name) => !field.options.includes(name))];
  const { id, ...described } = describedBy(props);
  return (
    <fieldset class="field" id={id} {...described} tabIndex={-1}>
      <legend>{field.label}</legend>
      <div class="row">
        {all.map((name) => (
          <Tick
            key={name}
            isTicked={chosen.includes(name)}
            set={(isTicked) =>
              set(all.filter((other) => (other === name ? isTicked : chosen.includes(other))).join(", "))
            }
          >
            {name}
          </Tick>
        ))}
      </div>
      <Notes {...props} />
    </fieldset>
  );
}

interface TickProps {
  isTicked: boolean;
  set(isTicked: boolean): void;
  children: ComponentChildren;
}

export function Tick({ isTicked, set, children }: TickProps) {
  return (
    <label class="check-line">
      <input type="checkbox" checked={isTicked} onChange={(event) => set(event.currentTarget.checked)} /> {children}
    </label>
  );
}
