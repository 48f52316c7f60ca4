/** The colors of the page: those of the system, or always the same. */
export type Theme = "system" | "light" | "dark";

const storageKey = "plinth.theme";

/** The theme that was chosen in this browser. */
export function storedTheme(): Theme {
	const stored = localStorage.getItem(storageKey);
	return stored === "light" || stored === "dark" ? stored : "system";
}

/** Shows the page in a theme. */
export function applyTheme(theme: Theme): void {
	if (theme === "system") {
		delete document.documentElement.dataset.theme;
	} else {
		document.documentElement.dataset.theme = theme;
	}
}

/** Changes to the opposite of what is shown, and remembers it. */
export function toggleTheme(): void {
	const shown = storedTheme();
	const isDark =
		shown === "dark" || (shown === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
	const next = isDark ? "light" : "dark";
	localStorage.setItem(storageKey, next);
	applyTheme(next);
}
