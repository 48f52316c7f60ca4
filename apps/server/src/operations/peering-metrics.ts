import type { Meter, ObservableCounter, ObservableGauge } from "@opentelemetry/api";
import type { Peerings, PeeringsState, RegionalCopies } from "@plinth/peering";

type Imported = Omit<PeeringsState["imports"][number], "name">;
type Exported = Omit<PeeringsState["exports"][number], "peer" | "export">;
type Labels = Readonly<Record<string, string>>;

/** What is measured: imports and streams to others, each with the labels that identify it. */
interface Measured {
	readonly imports: readonly (readonly [Imported, Labels])[];
	readonly exports: readonly (readonly [Exported, Labels])[];
}

/** Creates the instruments of peerings: the imports that this server runs, and its streams to peers. */
export function observePeerings(meter: Meter, peerings: Pick<Peerings, "state">): void {
	observe(meter, "plinth.peering", async () => {
		const { imports, exports } = await peerings.state();
		return {
			imports: imports.map((each) => [each, { import: each.name }]),
			exports: exports.map((each) => [each, { peer: each.peer, export: each.export }]),
		};
	});
}

/** Creates the instruments of regional copies: those that this server keeps up to date, and its streams to other regions. */
export function observeRegionalCopies(
	meter: Meter,
	regional: Pick<RegionalCopies, "state"> | undefined,
): void {
	if (regional === undefined) {
		return;
	}
	observe(meter, "plinth.regional", async () => {
		const { copies, offers } = await regional.state();
		return {
			imports: copies.map((each) => [each, { region: each.region, partition: each.partition }]),
			exports: offers.map((each) => [each, { region: each.peer, partition: each.export }]),
		};
	});
}

function observe(meter: Meter, prefix: string, measure: () => Promise<Measured>): void {
	const gauge = (name: string, description: string): ObservableGauge =>
		meter.createObservableGauge(`${prefix}.${name}`, { description });
	const counter = (name: string, description: string): ObservableCounter =>
		meter.createObservableCounter(`${prefix}.${name}`, { description });
	const state = gauge("import.state", "1 for the state of the import");
	const lag = gauge("import.lag.seconds", "For how long the copies have been behind");
	const age = gauge("import.age.seconds", "How long ago the other cluster was heard");
	const copies = gauge("import.copies", "The copies of the import, by type");
	const leftOut = gauge("import.left_out", "Resources and types that could not be copied");
	const received = counter("import.messages", "Messages that were received, heartbeats included");
	const streams = gauge("export.streams", "Open streams to the peer");
	const sent = counter("export.messages", "Messages that were sent, heartbeats included");
	const waiting = gauge(
		"export.unacknowledged",
		"Messages that were sent and that the peer has not stored",
	);
	const exportLag = gauge(
		"export.lag.seconds",
		"How long ago the oldest message was sent that the peer has not stored",
	);
	meter.addBatchObservableCallback(
		async (result) => {
			const { imports, exports } = await measure();
			for (const [each, labels] of imports) {
				result.observe(state, 1, { ...labels, state: each.state });
				if (each.lagMs >= 0) {
					result.observe(lag, each.lagMs / 1_000, labels);
				}
				if (each.ageMs >= 0) {
					result.observe(age, each.ageMs / 1_000, labels);
				}
				for (const [type, count] of each.copies) {
					result.observe(copies, count, { ...labels, type });
				}
				result.observe(leftOut, each.leftOut, labels);
				result.observe(received, each.messages, labels);
			}
			for (const [each, labels] of exports) {
				result.observe(streams, each.streams, labels);
				result.observe(sent, each.messages, labels);
				result.observe(waiting, each.unacknowledged, labels);
				result.observe(exportLag, each.lagMs / 1_000, labels);
			}
		},
		[state, lag, age, copies, leftOut, received, streams, sent, waiting, exportLag],
	);
}
