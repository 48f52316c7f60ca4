import { defaultOrder, type RowOrder } from "./row-order.ts";

const named = ["partition", "namespace", "name", "status", "age"] as const;

const orders = new Map<string, RowOrder>();

/** The order that a link names, as in `-age` or `2`. The same text is the same object. */
export function parseOrder(text: string | undefined): RowOrder {
	if (text === undefined) {
		return defaultOrder;
	}
	const known = orders.get(text);
	if (known !== undefined) {
		return known;
	}
	const isDescending = text.startsWith("-");
	const column = isDescending ? text.slice(1) : text;
	const by = /^\d{1,3}$/.test(column) ? Number(column) : named.find((each) => each === column);
	if (by === undefined) {
		return defaultOrder;
	}
	const order = { by, isDescending };
	orders.set(text, order);
	return order;
}

/** The text of an order in a link; empty for the default. */
export function formatOrder({ by, isDescending }: RowOrder): string {
	const text = `${isDescending ? "-" : ""}${by}`;
	return text === "name" ? "" : text;
}
