import { parseTableSearch, type TableSearch } from "../app/search.ts";
import type { TableQuery, ViewRequest } from "../live/view.ts";
import { parseOrder } from "./order-text.ts";
import { windowAround } from "./row-window.ts";

/** The height of a row in pixels. */
export const rowHeight = 30;

/** What a link to a table selects. */
export function tableQuery(
	typeKey: string,
	{ partition = "*", namespace = "*", prefix = "" }: TableSearch,
): TableQuery {
	return { typeKey, tenancy: { partition, namespace }, namePrefix: prefix };
}

/**
 * The table that a fragment such as `#/types/catalog.v1.Workload?q=web` leads to; `undefined` if it leads elsewhere, or is not
 * understood. The router understands all of them, but needs the types of the server for that.
 *
 * @param height - of the window, in pixels.
 */
export function tableOfLink(
	fragment: string,
	height: number,
): Extract<ViewRequest, { kind: "table" }> | undefined {
	const [, typeKey, search = ""] = /^#\/types\/([\w.-]+)\/?(?:\?(.*))?$/.exec(fragment) ?? [];
	if (typeKey === undefined) {
		return undefined;
	}
	const found = parseTableSearch(Object.fromEntries(new URLSearchParams(search)));
	return {
		...{ kind: "table", ...tableQuery(typeKey, found) },
		...{ order: parseOrder(found.sort), filter: found.q ?? "" },
		...windowAround({ top: 0, height }, rowHeight),
	};
}
