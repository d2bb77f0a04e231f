// Every path of the dashboard. The server has to know them before anybody asks for one, which loads what answers there.

export const DASHBOARD_PATHS = ["/dashboard", "/dashboard/me", "/dashboard/{asset}"] as const;
