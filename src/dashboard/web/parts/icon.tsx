// Pictures of buttons and of the navigation, drawn with lines in a square of 16.

const ICONS = {
  overview: "M2 13V9M6 13V3M10 13V7M14 13V5",
  backends: "M2 3h12v4H2zM2 9h12v4H2zM4.5 5h.01M4.5 11h.01",
  models: "M8 2l6 3-6 3-6-3zM2 8l6 3 6-3M2 11l6 3 6-3",
  keys: "M2 8a3 3 0 1 0 6 0a3 3 0 1 0-6 0M8 8h6v3M11.5 8v2",
  routes: "M2 8h4l3-4h5M6 8l3 4h5M12 2.5L13.5 4L12 5.5M12 10.5l1.5 1.5-1.5 1.5",
  queue: "M2 5v6M5.5 5v6M9 5v6M11.5 8h3M13 6.5L14.5 8L13 9.5",
  fallback: "M2 4h9M8.5 1.5L11 4L8.5 6.5M14 12H5M7.5 9.5L5 12L7.5 14.5",
  prompts: "M3 2h7l3 3v9H3zM5.5 7.5h5M5.5 10.5h5",
  requests: "M2 4h12M2 8h8M2 12h10",
  errors: "M8 2l6.5 11.5h-13zM8 6.5v3M8 11.5v.01",
  usage: "M8 2a6 6 0 1 0 6 6H8z",
  organizations: "M2 14V5l5-3v12M7 6h7v8M4.5 7h.01M4.5 10h.01M10 9h1M10 11.5h1",
  budgets: "M2 4h12v9H2zM2 7h12M10.5 10h1",
  notifications: "M3 12h10l-1.5-2V7a3.5 3.5 0 0 0-7 0v3zM7 14h2",
  audit: "M3 2h10v12H3zM5.5 5h5M5.5 8l1.5 1.5 3-3M5.5 12h5",
  configuration: "M2 5h6M12 5h2M2 11h2M8 11h6M10 3v4M6 9v4",
  limits: "M2 12a6 6 0 0 1 12 0M8 12l3-4",
  theme: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11z",
  playground: "M2 3h12v8H7l-3 3v-3H2z",
} as const;

export type IconName = keyof typeof ICONS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}
