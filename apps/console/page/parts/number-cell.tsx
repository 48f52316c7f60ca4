import { count } from "../model/format.ts";

/** A number in a table. 0 is muted, so that what is not 0 is seen among many. */
export function NumberCell({
	value,
	isBad = false,
	format = count,
}: {
	readonly value: number;
	/** Whether a number above 0 is alarming. */
	readonly isBad?: boolean;
	readonly format?: (value: number) => string;
}) {
	const tone = value === 0 ? " muted" : isBad ? " bad-text" : "";
	return <td className={`number${tone}`}>{format(value)}</td>;
}
