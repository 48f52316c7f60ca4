import { documentOf, type KnownType, type KnownTypes, tenancyAt } from "@plinth/documents";
import type { Resource } from "@plinth/proto";
import { hasNamespace } from "@plinth/resource";
import { type Change, follow } from "../api/follow.ts";
import { assertOfRegion, checkRegion } from "../api/regions.ts";
import type { ServerSession } from "../api/server-session.ts";
import type { ExitCode } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import type { ResourceFormat } from "../output/output-format.ts";
import { resourceName } from "../output/print-resources.ts";
import { ResourceTable } from "../output/resource-table.ts";
import { plainCell, type Row, TableLayout, type Tone } from "../output/table.ts";
import { warn } from "../warn.ts";
import { parseTypeOrTarget } from "./targets.ts";

/** The flags of `plinth watch`. */
export interface WatchFlags {
	readonly output: ResourceFormat;
	readonly allNamespaces?: boolean;
	readonly prefix?: string;
	readonly changesOnly?: boolean;
	/** As of `plinth get`. */
	readonly region?: string;
}

type ResourceChange = Exclude<Change, { kind: "complete" }>;

/** Prints the current resources, then every change, until it is interrupted. */
export async function watch(
	session: ServerSession,
	words: readonly string[],
	flags: WatchFlags,
): Promise<ExitCode> {
	checkRegion(flags.region);
	const types = await session.types();
	const { type, name } = parseTypeOrTarget(words, types);
	const printer = await printerOf(session, type, types, flags);
	const changes = followReported(session, type, {
		everywhere: flags.allNamespaces ?? false,
		namePrefix: name ?? flags.prefix ?? "",
		region: flags.region,
	});
	for await (const change of changes) {
		if (change.kind === "complete") {
			printer.complete();
		} else if (name === undefined || change.resource.id?.name === name) {
			if (!(flags.changesOnly && change.kind === "present")) {
				printer.print(change);
			}
		}
	}
	throw new Error("the watch ended unexpectedly");
}

/** What to watch: names with a prefix, in the session's tenancy or in all of them. */
export interface Followed {
	readonly everywhere: boolean;
	readonly namePrefix: string;
	/** As in a list. */
	readonly region?: string | undefined;
	/** Aborts to end the watch. */
	readonly until?: AbortSignal;
}

/** Follows resources in a session, and reports on standard error when the connection is lost or restored. */
export async function* followReported(
	session: ServerSession,
	type: KnownType,
	{ everywhere, namePrefix, region, until }: Followed,
): AsyncGenerator<Change> {
	const { io, connection, place } = session;
	const { server } = session.settings.endpoint;
	const changes = follow({
		resources: connection.resources,
		type,
		tenancy: tenancyAt(type, place, everywhere),
		...{ namePrefix, region },
		clock: io.clock,
		signal: until === undefined ? io.signal : AbortSignal.any([io.signal, until]),
		onLost: (reason) =>
			warn(io, `lost the connection to ${server} (${reason.rawMessage}): reconnecting`),
		onResumed: () => warn(io, `reconnected to ${server}`),
	});
	let isChecked = false;
	try {
		for (;;) {
			const { done, value } = await session.call(changes.next());
			if (done) {
				return;
			}
			if (!isChecked && value.kind !== "complete") {
				await assertOfRegion(session, type, region, [value.resource]);
				isChecked = true;
			}
			yield value;
		}
	} finally {
		await changes.return();
	}
}

interface Printer {
	print(change: ResourceChange): void;
	/** All current resources have been printed. */
	complete(): void;
}

async function printerOf(
	{ io }: ServerSession,
	type: KnownType,
	types: KnownTypes,
	{ output, allNamespaces, region }: WatchFlags,
): Promise<Printer> {
	const each = (text: (change: ResourceChange) => string): Printer => ({
		print: (change) => io.out(text(change)),
		complete: () => {},
	});
	switch (output) {
		case "name":
			return each(({ resource }) => `${resourceName(resource)}\n`);
		case "json":
			return each(
				({ kind, resource }) =>
					`${JSON.stringify({ event: kind, resource: documentOf(resource, types) })}\n`,
			);
		case "yaml": {
			const { toYaml } = await import("@plinth/documents/yaml");
			return each(
				({ kind, resource }) =>
					`---\n${toYaml({ event: kind, resource: documentOf(resource, types) })}`,
			);
		}
		case "table":
		case "wide":
			return new TablePrinter(
				new ResourceTable(type, {
					types,
					isWide: output === "wide",
					region,
					showTenancy: (allNamespaces ?? false) && hasNamespace(type.scope),
					now: () => io.clock.now(),
				}),
				io,
			);
	}
}

const tones: Readonly<Record<ResourceChange["kind"], Tone>> = {
	present: "plain",
	added: "good",
	changed: "unsure",
	deleted: "bad",
};

/** Prints rows as they arrive. The current resources determine the widths of the columns. */
class TablePrinter implements Printer {
	readonly #table: ResourceTable;
	readonly #io: Io;
	readonly #waiting: Row[] = [];
	#layout: TableLayout | undefined;

	constructor(table: ResourceTable, io: Io) {
		this.#table = table;
		this.#io = io;
	}

	print({ kind, resource }: ResourceChange): void {
		const row = this.#rowOf(kind, resource);
		if (this.#layout === undefined) {
			this.#waiting.push(row);
		} else {
			this.#io.out(this.#layout.row(row));
		}
	}

	complete(): void {
		const columns = [{ heading: "EVENT", cut: false }, ...this.#table.columns];
		const { width, color } = this.#io;
		const sample = [[plainCell("present")], ...this.#waiting];
		const layout = new TableLayout(columns, sample, { width, color, moreFollows: true });
		this.#layout = layout;
		const rows = this.#waiting.splice(0).map((row) => layout.row(row));
		this.#io.out(layout.heading() + rows.join(""));
	}

	#rowOf(kind: ResourceChange["kind"], resource: Resource): Row {
		return [{ text: kind, tone: tones[kind] }, ...this.#table.rowOf(resource)];
	}
}
