/** The title of the page at a path, which tabs and bookmarks show: the most specific name first, as in `web-1 · Workload · Plinth`. */
export function pageTitle(pathname: string): string {
	const [page = "", ...names] = pathname.split("/").filter(Boolean).map(decoded);
	const [first = "", name, view] = names;
	const kind = first.slice(first.lastIndexOf(".") + 1);
	switch (page) {
		case "":
			return titleOf(["Overview"]);
		case "flow":
			return titleOf(["Graph of controllers"]);
		case "controllers":
			return titleOf([first, "Controllers"]);
		case "create":
			return titleOf([`Create ${kind}`]);
		case "types":
			return first === "" ? titleOf(["Types"]) : titleOf([viewNames.get(view ?? ""), name, kind]);
		default:
			return titleOf([]);
	}
}

const viewNames: ReadonlyMap<string, string> = new Map([
	["edit", "Edit"],
	["graph", "Graph"],
]);

function titleOf(parts: readonly (string | undefined)[]): string {
	return [...parts, "Plinth"].filter(Boolean).join(" · ");
}

/** A part of a path. One that is not well encoded is left as it is. */
function decoded(part: string): string {
	try {
		return decodeURIComponent(part);
	} catch {
		return part;
	}
}
