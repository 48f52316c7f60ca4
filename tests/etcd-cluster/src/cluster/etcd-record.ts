import { fromBinary } from "@bufbuild/protobuf";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { decode } from "@plinth/resource";
import {
	EtcdClient,
	type Event,
	Event_EventType,
	Keys,
	type KeyValue,
	keyText,
} from "@plinth/storage-etcd/testing";
import type {
	EffectChange,
	LeaseChange,
	RegisterChange,
	StorageRecord,
} from "../history/storage-record.ts";
import { Effect, effectData, Register } from "../module/types.ts";

/** A transaction of a server: each puts the head key, whether or not it changes anything else. */
export interface TransactionMark {
	readonly revision: number;
	/** The server process that sent it. */
	readonly instance: string;
	/** The resources that it changed: type family and name. */
	readonly changed: readonly string[];
}

/** Everything that the servers of a cluster have written to etcd, from the first revision to the newest. */
export interface EtcdRecord extends StorageRecord {
	readonly revisions: number;
	readonly transactions: readonly TransactionMark[];
}

/** The storage of the servers of a cluster. */
export interface RecordSource {
	readonly members: readonly { readonly url: string }[];
	readonly prefix: string;
}

/** Reads all revisions under the prefix, which must not have been compacted. */
export async function readEtcdRecord({ members, prefix }: RecordSource): Promise<EtcdRecord> {
	const client = new EtcdClient({ endpoints: members.map(({ url }) => url) });
	const end = new AbortController();
	try {
		const identity = await client.range({ key: new Keys(prefix).identity });
		const record = new Recorder(prefix, versionOffsetOf(identity.kvs[0]));
		const key = Buffer.from(`${prefix}/`);
		// "0" comes after "/".
		const range = { key, rangeEnd: Buffer.from(`${prefix}0`) };
		const { kvs } = await client.range({ ...range, keysOnly: true });
		const newest = Math.max(...kvs.map(({ modRevision }) => record.versionOf(modRevision)));
		for await (const { events } of client.watch({ ...range, startRevision: 1n }, end.signal)) {
			for (const event of events) {
				record.add(event);
			}
			if (record.newest >= newest) {
				return record.finished();
			}
		}
		throw new TypeError("a watch ends by an error only");
	} finally {
		end.abort();
		client.close();
	}
}

/** Sorts the events of the prefix. */
class Recorder {
	newest = 0;
	readonly #prefix: string;
	readonly #keys: Keys;
	readonly #registers: RegisterChange[] = [];
	readonly #leases: LeaseChange[] = [];
	readonly #effects: EffectChange[] = [];
	readonly #transactions = new Map<number, { instance: string; changed: string[] }>();

	readonly #versionOffset: number;

	constructor(prefix: string, versionOffset: number) {
		this.#prefix = prefix;
		this.#versionOffset = versionOffset;
		this.#keys = new Keys(prefix);
	}

	/** Revisions are recorded as the versions that clients see. */
	versionOf(revision: bigint): number {
		return Number(revision) + this.#versionOffset;
	}

	add({ type, kv }: Event): void {
		if (kv === undefined) {
			throw new TypeError("an event has a key");
		}
		const revision = this.versionOf(kv.modRevision);
		const key = keyText(kv.key);
		const isDeletion = type === Event_EventType.DELETE;
		this.newest = revision;
		const transaction = this.#transactions.get(revision) ?? { instance: "", changed: [] };
		if (key === keyText(this.#keys.head)) {
			transaction.instance = Buffer.from(kv.value).toString().split("/")[0] ?? "";
			this.#transactions.set(revision, transaction);
			return;
		}
		if (key === keyText(this.#keys.identity) || key.startsWith(`${this.#prefix}/commits/`)) {
			return;
		}
		const leases = `${this.#prefix}/elections/`;
		if (key.startsWith(leases)) {
			const createRevision = this.versionOf(kv.createRevision);
			const lease = { lease: key.slice(leases.length), revision, createRevision };
			this.#leases.push(leaseChange(lease, kv, isDeletion));
			return;
		}
		const name = this.#keys.parse(key);
		const family = name && `${name.type.group}.${name.type.kind}`;
		transaction.changed.push(`${family} ${name?.name}`);
		this.#transactions.set(revision, transaction);
		if (family === Register.family && name !== undefined) {
			const text = isDeletion ? {} : { text: decode(Register, resourceOf(kv)).data.genre };
			this.#registers.push({ revision, register: name.name, ...text });
		} else if (family === Effect.family && !isDeletion) {
			const { process, run } = effectData(decode(Effect, resourceOf(kv)).data.title);
			this.#effects.push({ revision, process, run });
		}
	}

	finished(): EtcdRecord {
		return {
			revisions: this.newest - this.#versionOffset,
			registers: this.#registers,
			leases: this.#leases,
			effects: this.#effects,
			transactions: [...this.#transactions].map(([revision, mark]) => ({ revision, ...mark })),
		};
	}
}

function leaseChange(
	{
		createRevision,
		...change
	}: Pick<LeaseChange, "lease" | "revision"> & {
		readonly createRevision: number;
	},
	{ value }: KeyValue,
	isDeletion: boolean,
): LeaseChange {
	if (isDeletion) {
		return { kind: "delete", ...change };
	}
	const holder = /process (\d+)$/.exec(Buffer.from(value).toString())?.[1];
	return { kind: "put", ...change, createRevision, process: Number(holder) };
}

/** The difference between versions and revisions, from the identity of the store. */
function versionOffsetOf(identity: KeyValue | undefined): number {
	const { versionOffset }: { versionOffset: number } = JSON.parse(
		Buffer.from(identity?.value ?? []).toString(),
	);
	return versionOffset;
}

function resourceOf({ value }: KeyValue): Resource {
	return fromBinary(ResourceSchema, value);
}
