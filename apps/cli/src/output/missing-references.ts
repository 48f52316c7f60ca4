import { timestampMs } from "@bufbuild/protobuf/wkt";
import { nameOfKey, ruleName } from "@plinth/documents";
import type { MissingReference } from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import { shortDuration } from "../configuration/duration.ts";
import type { Io } from "../io.ts";
import { printable } from "./printable.ts";
import { plainCell, renderTable } from "./table.ts";

/** References without a target as a table; empty if there are none. */
export function missingTable(
	references: readonly MissingReference[],
	io: Pick<Io, "width" | "color" | "clock">,
	/** A further column. */
	last: { readonly heading: string; readonly textOf: (reference: MissingReference) => string },
): string {
	if (references.length === 0) {
		return "";
	}
	const now = io.clock.now();
	const headings = ["RESOURCE", "FIELD", "TARGET", "ON-DELETE", "MISSING-FOR", last.heading];
	const rows = references.map((reference) => {
		const { holder, path, target, rule, since } = reference;
		return [
			...[nameOfKey(holder), path, nameOfKey(target), ruleName(rule)],
			since === undefined ? "" : shortDuration(now - timestampMs(since)),
			last.textOf(reference),
		].map((text) => plainCell(printable(text)));
	});
	const columns = headings.map((heading, at) => ({
		heading,
		cut: at === 1 || at === 2,
		priority: heading === "MISSING-FOR" ? 2 : heading === "ON-DELETE" ? 1 : 0,
	}));
	return renderTable(columns, rows, io);
}

/** As in `1 reference`. */
export function countOf(count: number | bigint): string {
	return `${count} ${Number(count) === 1 ? "reference" : "references"}`;
}
