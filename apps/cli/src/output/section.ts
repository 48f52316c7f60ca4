/** A heading with indented lines; nothing if there are none. */
export function section(title: string, text: string): string {
	return text === "" ? "" : `${title}:\n${text.replaceAll(/^(?=.)/gm, "  ")}`;
}

/** The width that the lines of a section have. */
export function widthInSection(width: number | undefined): number | undefined {
	return width === undefined ? undefined : width - 2;
}
