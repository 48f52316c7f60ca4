/** What a key does on every page. */
export type KeyAction = "filter" | "help" | "palette";

/** The keys, for the help. */
export const shortcuts: readonly (readonly [keys: string, action: string])[] = [
	["Ctrl K", "go to a type, a resource or an action"],
	["/", "filter the rows"],
	["↑ ↓", "move between rows"],
	["Enter", "open a row"],
	["?", "this help"],
	["Esc", "close a dialog, or leave the filter"],
];

/**
 * The action of a key, if it has one.
 *
 * @param isTyping - whether the focus is in a field, where letters are text.
 */
export function actionOf(
	event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">,
	isTyping: boolean,
): KeyAction | undefined {
	const { key, ctrlKey, metaKey, altKey } = event;
	if ((ctrlKey || metaKey) && !altKey && key.toLowerCase() === "k") {
		return "palette";
	}
	if (isTyping || ctrlKey || metaKey || altKey) {
		return undefined;
	}
	return key === "/" ? "filter" : key === "?" ? "help" : undefined;
}
