import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type GetExportResponse,
	PeeringRemovedSchema,
	TypePositionSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import type { ImportingRecord } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { gvkKey, isUlid, type ResourceType, type TypeRegistry, typeOf } from "@plinth/resource";
import type { CopyCheck } from "@plinth/resource-service";
import { Backoff, type Logger, type Runtime, sleep } from "@plinth/runtime";
import { Exhausted, Fenced } from "@plinth/storage";
import type { ConnectPeer } from "../connect.ts";
import { peeringLimits, protocolVersion } from "../limits.ts";
import { type ExchangeClient, exchangeClient } from "../trust/peer-credentials.ts";
import { encodeCredential, peerHeader } from "../trust/peer-header.ts";
import { typeProblem } from "../types.ts";
import { MessageApplier, ProtocolViolation } from "./apply-messages.ts";
import { type ImportStore, PartitionTaken, TooManyCopies } from "./import-store.ts";
import { Inbox } from "./inbox.ts";
import { LeftOutResources } from "./left-out.ts";
import type { ImportState, LiveImport } from "./live-import.ts";

/** The longest name of a type of the peer that is kept, in characters. */
const typeLength = 200;

/** Options of `ImportRun`. */
export interface ImportRunOptions {
	readonly store: ImportStore;
	readonly live: LiveImport;
	/** The Peering as it is declared. The credential is not sent to this address, but to where it was established. */
	readonly peering: {
		readonly name: string;
		/** Whether there is a Peering of that name. */
		readonly isDeclared: boolean;
		readonly address: string;
		readonly ca: string;
	};
	/** The credential of the peering as it is now; `undefined` if it is not established. */
	readonly credential: () => Promise<ImportingRecord | undefined>;
	readonly ownCluster: string;
	readonly registry: Pick<TypeRegistry, "get">;
	readonly check: Pick<CopyCheck, "problem">;
	readonly connect: ConnectPeer;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** Called when the state has changed. */
	readonly onState: () => void;
}

/** Runs one import: dials the peer, streams, and dials again after growing pauses. */
export class ImportRun {
	readonly #options: ImportRunOptions;
	readonly #backoff: Backoff;
	/** Whether what was left out before is to be tried again. */
	#retriesLeftOut = true;

	constructor(options: ImportRunOptions) {
		this.#options = options;
		const { clock, random } = options.runtime;
		const { shortestPauseMs: baseMs, longestPauseMs: maxMs } = peeringLimits;
		this.#backoff = new Backoff({ clock, random, baseMs, maxMs });
	}

	/**
	 * Runs until the signal aborts.
	 *
	 * @throws Fenced if another server runs the imports; the reason of the signal.
	 */
	async run(signal: AbortSignal): Promise<never> {
		const { live, store } = this.#options;
		live.restore(store.record);
		for (;;) {
			signal.throwIfAborted();
			try {
				await this.#dial(signal);
			} catch (failure) {
				signal.throwIfAborted();
				if (failure instanceof Fenced) {
					throw failure;
				}
				live.isCurrent = false;
				await this.#failed(failure);
			}
			await this.#backoff.wait(signal);
		}
	}

	async #failed(failure: unknown): Promise<void> {
		const { store, logger, live } = this.#options;
		const state = stateOf(failure);
		const message = failure instanceof Error ? messageOf(failure) : String(failure);
		const isEnded = state === "ExportMissing" || state === "PeeringRemoved";
		if (live.state !== state) {
			logger.warn({ import: store.record.import, state, reason: message }, "import interrupted");
		}
		try {
			await store.reload();
			if (isEnded && store.record.partitionUid !== "") {
				await store.removeAll({ state, message, leftOut: [], leftOutTotal: 0n });
			} else if (store.record.state !== state || store.record.message !== message) {
				await store.recordProgress({ state, message, ...this.#times() });
			}
		} catch (error) {
			if (error instanceof Fenced) {
				throw error;
			}
			logger.warn({ import: store.record.import, err: error }, "import not recorded");
		}
		this.#setState(state, message);
	}

	#setState(state: ImportState, message = ""): void {
		const { live, onState } = this.#options;
		if (live.state !== state || live.message !== message) {
			live.state = state;
			live.message = message;
			onState();
		}
	}

	/** One connection, until it ends. */
	async #dial(signal: AbortSignal): Promise<void> {
		const { peering, credential, connect, store } = this.#options;
		await store.reload();
		const known = await credential();
		if (known === undefined || known.credential === "") {
			throw new NotEstablished(
				peering.isDeclared
					? `the peering ${peering.name} has no credential: run plinth peering establish with a token of the other cluster`
					: `there is no peering ${peering.name} here: run plinth peering establish - --name ${peering.name} with a token of the other cluster`,
			);
		}
		const { address, ca } = known;
		if (address !== peering.address || ca !== peering.ca) {
			throw new AddressChanged(
				`the address or the certificates of the peering ${peering.name} are not those for which its credential was established: set them back, or run plinth peering establish with a new token of the other cluster`,
			);
		}
		const ended = new AbortController();
		const onAbort = () => ended.abort(signal.reason);
		signal.addEventListener("abort", onAbort, { once: true });
		const connection = connect({ address, ca });
		try {
			const headers = {
				[peerHeader]: encodeCredential(known.peeringId, known.credential),
			};
			await this.#stream(exchangeClient(connection), headers, known.cluster, ended.signal);
		} finally {
			signal.removeEventListener("abort", onAbort);
			ended.abort(new ConnectError("the stream is no longer read", Code.Canceled));
			connection.close();
		}
	}

	async #stream(
		client: ExchangeClient,
		headers: Readonly<Record<string, string>>,
		peerCluster: string,
		signal: AbortSignal,
	): Promise<void> {
		const { store, live, runtime, check, peering, ownCluster } = this.#options;
		const call = { headers, signal };
		const described = await describe(client, store.record.export, call);
		live.heard();
		const { types, leftOut } = this.#typesOf(described);
		await this.#prepare(described, types, peerCluster);
		const { partition, export: name } = store.record;
		const place = { partition, peering: peering.name, peerCluster, ownCluster };
		const applier = new MessageApplier({ store, place, types, check, leftOut });
		const retried = this.#retriesLeftOut ? leftOut.types : [];
		const positions = types.map(({ key, type }) => {
			const known = applier.progress.positions.find(
				(each) => each.type && gvkKey(each.type) === key,
			);
			const version = retried.includes(key) ? "" : (known?.version ?? "");
			return create(TypePositionSchema, { type: typeOf(type), version });
		});
		await this.#count(
			positions.map(({ version }) => version),
			leftOut,
		);
		const { generation, incarnation } = described;
		const stream = client.stream(
			{ protocolVersion, export: name, generation, incarnation, positions },
			call,
		);
		const inbox = new Inbox();
		readInto(inbox, stream, () => live.received()).catch((failure: unknown) => inbox.fail(failure));
		let streamId = "";
		for (;;) {
			const silence = new AbortController();
			sleep(runtime.clock, peeringLimits.silenceMs, silence.signal).then(
				() => inbox.fail(new ConnectError("nothing was received for 30 s", Code.Unavailable)),
				() => {},
			);
			const messages = await inbox.take().finally(() => silence.abort());
			live.isCurrent = false;
			const { leftOutTotal } = store.record;
			await applier.apply(messages);
			if (store.record.leftOutTotal !== leftOutTotal) {
				this.#options.onState();
			}
			const last = messages.at(-1);
			const start = messages.find(({ message }) => message.case === "start")?.message;
			streamId = start?.case === "start" ? start.value.streamId : streamId;
			if (last === undefined || streamId === "") {
				throw new ConnectError("the stream has no start", Code.Internal);
			}
			const { sequence } = last;
			const acknowledged = client.acknowledge(
				{ streamId, sequence },
				{ ...call, timeoutMs: peeringLimits.callMs },
			);
			acknowledged.catch((failure: unknown) => inbox.fail(failure));
			const isQuiet = last.isCurrent || last.message.case === "heartbeat";
			if (isQuiet && inbox.isEmpty && applier.isComplete) {
				await this.#current(applier);
			}
		}
	}

	/** The types to stream, and what is left out already. */
	#typesOf({ types: offered }: GetExportResponse) {
		const { registry, store } = this.#options;
		const { leftOut: recorded, leftOutTotal } = store.record;
		const resources = recorded.filter(({ name }) => name !== "");
		const wholeTypes = recorded.length - resources.length;
		const leftOut = new LeftOutResources(resources, Number(leftOutTotal) - wholeTypes);
		const types: ResourceType[] = [];
		for (const { type, problem } of offered.slice(0, peeringLimits.types)) {
			const key = type === undefined ? "" : gvkKey(type);
			const registered = type && registry.get(type);
			const reason =
				problem === "" ? typeProblem(registered, key) : `in the other cluster: ${problem}`;
			if (registered !== undefined && reason === undefined) {
				types.push(registered);
			} else {
				leftOut.add(key.slice(0, typeLength), { namespace: "", name: "" }, reason ?? "");
			}
		}
		return { types, leftOut };
	}

	/**
	 * Makes the store ready for a stream: with the partition, and without copies of types that are no longer streamed. The
	 * positions of another incarnation, or of another content of the Export, mean nothing: all is requested again.
	 */
	async #prepare(
		{ generation, incarnation }: GetExportResponse,
		types: readonly ResourceType[],
		peerCluster: string,
	): Promise<void> {
		const { store } = this.#options;
		await store.createPartition(peerCluster);
		await store.removeFamilies(new Set(types.map(({ family }) => family)));
		const { record } = store;
		const isSame = record.generation === generation && record.incarnation === incarnation;
		const streamed = new Set(types.map(({ key }) => key));
		const kept = record.positions.filter(({ type }) => type && streamed.has(gvkKey(type)));
		const positions = isSame ? kept : [];
		if (!isSame || kept.length < record.positions.length) {
			await store.recordProgress({ generation, incarnation, positions });
		}
	}

	/** Counts how the types of a stream begin, and records that it was opened. */
	async #count(versions: readonly string[], leftOut: LeftOutResources): Promise<void> {
		const { store } = this.#options;
		const snapshots = versions.filter((version) => version === "").length;
		await store.recordProgress({
			state: "Streaming",
			message: "",
			leftOut: [...leftOut.named],
			leftOutTotal: BigInt(leftOut.total),
			snapshots: store.record.snapshots + BigInt(snapshots),
			resumptions: store.record.resumptions + BigInt(versions.length - snapshots),
			...this.#times(),
		});
		this.#setState("Streaming");
	}

	/** Everything that was received is stored, and the peer has nothing more. */
	async #current(applier: MessageApplier): Promise<void> {
		const { live, store } = this.#options;
		live.current();
		this.#backoff.reset();
		this.#retriesLeftOut = false;
		const recordedMs = Number(store.record.currentMs);
		if (live.currentMs - recordedMs >= peeringLimits.recordMs || recordedMs === 0) {
			await store.recordProgress({ ...applier.progress, ...this.#times() });
		}
	}

	#times() {
		const { heardMs, currentMs } = this.#options.live;
		return { heardMs: BigInt(Math.floor(heardMs)), currentMs: BigInt(Math.floor(currentMs)) };
	}
}

/** The peering has no credential. */
class NotEstablished extends Error {}

/** The Peering names another address than that for which its credential was established. */
class AddressChanged extends Error {}

/** The peer has no such export for this cluster. */
class ExportMissing extends Error {}

async function describe(
	client: ExchangeClient,
	name: string,
	call: { readonly headers: Readonly<Record<string, string>>; readonly signal: AbortSignal },
): Promise<GetExportResponse> {
	const options = { ...call, timeoutMs: peeringLimits.callMs };
	try {
		const described = await client.getExport({ protocolVersion, export: name }, options);
		const { generation, incarnation } = described;
		// Each commit of the import has both.
		if (!isUlid(incarnation) || generation.length > peeringLimits.generationLength) {
			throw new ProtocolViolation("the peer has sent a malformed generation or incarnation");
		}
		return described;
	} catch (failure) {
		if (failure instanceof ConnectError && failure.code === Code.NotFound) {
			throw new ExportMissing(
				`the other cluster has no Export of the name ${name} whose peers name this cluster`,
			);
		}
		throw failure;
	}
}

async function readInto(
	inbox: Inbox,
	stream: ReturnType<ExchangeClient["stream"]>,
	onMessage: () => void,
): Promise<void> {
	for await (const message of stream) {
		onMessage();
		await inbox.add(message);
	}
	throw new ConnectError("the stream has ended", Code.Aborted);
}

function stateOf(failure: unknown): ImportState {
	if (failure instanceof NotEstablished) {
		return "PeeringMissing";
	}
	if (failure instanceof AddressChanged) {
		return "AddressChanged";
	}
	if (failure instanceof ExportMissing) {
		return "ExportMissing";
	}
	if (failure instanceof PartitionTaken) {
		return "PartitionTaken";
	}
	if (failure instanceof TooManyCopies) {
		return "TooManyCopies";
	}
	if (failure instanceof Exhausted) {
		return "Full";
	}
	if (!(failure instanceof ConnectError)) {
		return "Failed";
	}
	if (failure.findDetails(PeeringRemovedSchema).length > 0) {
		return "PeeringRemoved";
	}
	switch (failure.code) {
		case Code.Unauthenticated:
		case Code.PermissionDenied:
			return "Refused";
		case Code.Aborted:
		case Code.NotFound:
		case Code.Canceled:
			return "Connecting";
		case Code.Unavailable:
		case Code.DeadlineExceeded:
			return "Unreachable";
		default:
			return "Failed";
	}
}

function messageOf(failure: Error): string {
	return (failure instanceof ConnectError ? failure.rawMessage : failure.message).slice(0, 500);
}
