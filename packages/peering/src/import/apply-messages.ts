import { create } from "@bufbuild/protobuf";
import type { Resource, Type } from "@plinth/proto";
import {
	type StreamResponse,
	type TypePosition,
	TypePositionSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import {
	familyKey,
	gvkKey,
	nameKey,
	type ResourceType,
	sameType,
	type TypeRegistry,
	typeOf,
} from "@plinth/resource";
import type { CopyCheck } from "@plinth/resource-service";
import { Exhausted } from "@plinth/storage";
import { type ImportStore, TooManyCopies } from "./import-store.ts";
import {
	type CopyPlace,
	copyId,
	type IncomingCopy,
	incomingCopy,
	isName,
} from "./incoming-copy.ts";
import type { LeftOutResources } from "./left-out.ts";

/** A peer has sent what the protocol does not allow. */
export class ProtocolViolation extends Error {
	override readonly name = "ProtocolViolation";
}

/** What the messages of one stream are applied to. */
export interface ApplyOptions {
	readonly store: ImportStore;
	readonly place: CopyPlace;
	/** The types that were requested: one of each family. */
	readonly types: readonly ResourceType[];
	readonly registry: Pick<TypeRegistry, "get">;
	readonly check: Pick<CopyCheck, "problem">;
	readonly leftOut: LeftOutResources;
}

/** The refused commits after which changes for which there is no room are no longer divided. */
const maxRefusals = 200;

/** What one name is to be after a commit. */
type Wanted =
	| { readonly kind: "copy"; readonly copy: Resource }
	| { readonly kind: "removed"; readonly id: NonNullable<Resource["id"]> };

/**
 * Applies the messages of a stream to the copies of an import. Each commit has the copies of some messages and, in the
 * record of the import, the position after them. So after a crash, the import continues after what it has stored; what it is
 * sent again changes nothing. What the messages remove is removed by a commit before that, which has no position.
 *
 * A snapshot ends with the removal of all copies of the type that were not in it: never before, so that a snapshot that is
 * cut off removes nothing. Its position is recorded after that.
 *
 * When there is no room, because there are too many copies or the storage is full, those that are stored are changed as far as
 * there is room for that, and removed as before. But no other is stored, and no position is recorded: so all that was skipped is
 * sent again. The failure is thrown once the source has sent all types and has nothing more to send. What is removed until then
 * makes room, wherever in the stream it comes. A source that has nothing more to send may not have begun with all types: so each
 * has to be heard of, unless nothing was sent for as long as a heartbeat takes.
 */
export class MessageApplier {
	readonly #options: ApplyOptions;
	/** The names that the snapshots of types have had so far and that have copies, by type key. */
	readonly #snapshots = new Map<string, Set<string>>();
	readonly #positions: Map<string, TypePosition>;
	/** The keys of the types that this stream has sent something of. */
	readonly #begun = new Set<string>();
	#noRoom: TooManyCopies | Exhausted | undefined;
	/** How many commits of changes were refused since. */
	#refusals = 0;

	constructor(options: ApplyOptions) {
		this.#options = options;
		this.#positions = positionsOf(options.store.record.positions);
	}

	/** Whether all types are stored up to a position, and none is in a snapshot. */
	get isComplete(): boolean {
		return (
			this.#snapshots.size === 0 && this.#options.types.every(({ key }) => this.#positions.has(key))
		);
	}

	/** Why no more copies are stored; `undefined` while they are. */
	get noRoom(): TooManyCopies | Exhausted | undefined {
		return this.#noRoom;
	}

	/**
	 * Applies messages that follow each other.
	 *
	 * @throws ProtocolViolation; TooManyCopies and Exhausted at the end of what is sent; the other failures of a storage.
	 */
	async apply(messages: readonly StreamResponse[]): Promise<void> {
		const wanted = new Map<string, Wanted>();
		for (const { message } of messages) {
			switch (message.case) {
				case "upsert":
					this.#upsert(message.value.resource, wanted);
					this.#advance(message.value.resource?.id?.type, message.value.version);
					break;
				case "delete":
				case "unchanged": {
					const type = this.#typeOf(message.value.type);
					const { namespace, name, version } = message.value;
					if (!isName(type, namespace, name)) {
						throw new ProtocolViolation("the peer has sent a malformed name");
					}
					const id = copyId(type, this.#options.place, { namespace, name });
					if (message.case === "unchanged") {
						// A name without a copy keeps nothing, however many a peer sends.
						const seen = this.#snapshots.get(type.key);
						if (seen !== undefined && (await this.#options.store.find(id)) !== undefined) {
							seen.add(nameKey(id));
						}
					} else {
						this.#options.leftOut.remove(type.key, message.value);
						this.#snapshots.get(type.key)?.delete(nameKey(id));
						wanted.set(nameKey(id), { kind: "removed", id });
						this.#advance(message.value.type, version);
					}
					break;
				}
				case "position":
					this.#advance(message.value.type, message.value.version);
					break;
				case "snapshotStart": {
					const type = this.#typeOf(message.value.type);
					this.#snapshots.set(type.key, new Set());
					if (message.value.version === "") {
						this.#options.leftOut.clear(type.key);
						this.#positions.delete(type.key);
					}
					break;
				}
				case "endOfSnapshot":
					await this.#commit(wanted);
					await this.#endSnapshot(message.value);
					break;
				default:
			}
		}
		await this.#commit(wanted);
		if (this.#noRoom !== undefined && this.isComplete && this.#isAll(messages.at(-1))) {
			throw this.#noRoom;
		}
	}

	/** Whether the source has nothing to send after the message. */
	#isAll(last: StreamResponse | undefined): boolean {
		const hasBegun = this.#options.types.every(({ key }) => this.#begun.has(key));
		return last?.message.case === "heartbeat" || (last?.isCurrent === true && hasBegun);
	}

	#upsert(sent: Resource | undefined, wanted: Map<string, Wanted>): void {
		const type = this.#typeOf(sent?.id?.type);
		const { name = "", tenancy } = sent?.id ?? {};
		const place = { namespace: tenancy?.namespace ?? "", name };
		if (sent === undefined || !isName(type, place.namespace, name)) {
			throw new ProtocolViolation("the peer has sent a malformed name");
		}
		const id = copyId(type, this.#options.place, place);
		const incoming = this.#incoming(type, sent);
		if ("problem" in incoming) {
			this.#options.leftOut.add(type.key, place, incoming.problem);
			this.#snapshots.get(type.key)?.delete(nameKey(id));
			wanted.set(nameKey(id), { kind: "removed", id });
			return;
		}
		this.#options.leftOut.remove(type.key, place);
		this.#snapshots.get(type.key)?.add(nameKey(id));
		wanted.set(nameKey(id), { kind: "copy", copy: incoming.copy });
	}

	/** A stream of another region has all versions of a type, of which this cluster may lack some. */
	#incoming(type: ResourceType, sent: Resource): IncomingCopy {
		const { place, registry, check } = this.#options;
		const version = place.kind === "region" ? sent.id?.type && registry.get(sent.id.type) : type;
		return version === undefined
			? { problem: `resource type ${sent.id?.type && gvkKey(sent.id.type)} not registered` }
			: incomingCopy(version, sent, place, check);
	}

	/** The type that was requested, which has begun. @throws ProtocolViolation if it is none. */
	#typeOf(type: Type | undefined): ResourceType {
		const { types, place } = this.#options;
		const found = types.find(
			(each) =>
				type &&
				(place.kind === "region" ? each.family === familyKey(type) : sameType(each.type, type)),
		);
		if (found === undefined) {
			throw new ProtocolViolation("the peer has sent a type that was not requested");
		}
		this.#begun.add(found.key);
		return found;
	}

	#advance(type: Type | undefined, version: string): void {
		if (type === undefined || version === "") {
			return;
		}
		const found = this.#typeOf(type);
		if (!/^\d{1,40}$/.test(version)) {
			throw new ProtocolViolation("the peer has sent a malformed version");
		}
		// Not the message of the peer, which may have more fields: it is stored with each commit.
		const position = create(TypePositionSchema, { type: typeOf(found.type), version });
		this.#positions.set(found.key, position);
	}

	async #endSnapshot({ type, version }: TypePosition): Promise<void> {
		const found = this.#typeOf(type);
		const seen = this.#snapshots.get(found.key);
		if (seen === undefined) {
			throw new ProtocolViolation("the peer has ended a snapshot that it had not begun");
		}
		await this.#options.store.removeOthers(found.type, seen);
		this.#snapshots.delete(found.key);
		this.#advance(type, version);
		await this.#record([], []);
	}

	/** Commits what is wanted, and forgets it. */
	async #commit(wanted: Map<string, Wanted>): Promise<void> {
		const copies: Resource[] = [];
		const removed: Resource[] = [];
		for (const each of wanted.values()) {
			if (each.kind === "copy") {
				copies.push(each.copy);
			} else {
				const stored = await this.#options.store.find(each.id);
				removed.push(...(stored === undefined ? [] : [stored]));
			}
		}
		// What finds nothing only moves the position, which the next commit records.
		if (copies.length > 0 || removed.length > 0 || this.#options.leftOut.isChanged) {
			await this.#record(copies, removed);
		}
		wanted.clear();
	}

	async #record(copies: readonly Resource[], removed: readonly Resource[]): Promise<void> {
		const { store, leftOut } = this.#options;
		if (copies.length > 0) {
			await store.remove(removed);
		}
		if (this.#noRoom === undefined) {
			try {
				if (copies.length > 0) {
					await this.#store(copies, this.progress);
				} else {
					await store.remove(removed, this.progress);
				}
				leftOut.recorded();
				return;
			} catch (failure) {
				if (!(failure instanceof TooManyCopies || failure instanceof Exhausted)) {
					throw failure;
				}
				this.#noRoom = failure;
			}
		}
		if (copies.length === 0) {
			await store.remove(removed);
		}
		await this.#change(await this.#known(copies));
	}

	/**
	 * Changes stored copies, as far as there is room: those that do not fit stay as they are. They are found by halves, until too
	 * much of a stream was refused; after that, what is refused in one commit is not tried again in parts.
	 */
	async #change(copies: readonly Resource[]): Promise<void> {
		try {
			await this.#options.store.commit(copies, {});
		} catch (failure) {
			if (!(failure instanceof TooManyCopies || failure instanceof Exhausted)) {
				throw failure;
			}
			this.#refusals += 1;
			if (copies.length > 1 && this.#refusals < maxRefusals) {
				const half = Math.ceil(copies.length / 2);
				await this.#change(copies.slice(0, half));
				await this.#change(copies.slice(half));
			}
		}
	}

	/** Those of which a copy is stored. The names of others are forgotten, however many a peer sends. */
	async #known(copies: readonly Resource[]): Promise<readonly Resource[]> {
		const known: Resource[] = [];
		for (const copy of copies) {
			if ((await this.#options.store.find(copy.id)) !== undefined) {
				known.push(copy);
			} else if (copy.id !== undefined) {
				this.#snapshots.get(this.#typeOf(copy.id.type).key)?.delete(nameKey(copy.id));
			}
		}
		return known;
	}

	/** Commits copies; in two parts, if they are too large for one. Only the last part has the progress. */
	async #store(
		copies: readonly Resource[],
		progress: MessageApplier["progress"] | undefined,
	): Promise<void> {
		try {
			await this.#options.store.commit(copies, progress ?? {});
		} catch (failure) {
			if (!(failure instanceof Exhausted) || copies.length < 2) {
				throw failure;
			}
			const half = Math.ceil(copies.length / 2);
			await this.#store(copies.slice(0, half), undefined);
			await this.#store(copies.slice(half), progress);
		}
	}

	/** What is to be recorded: how far each type was copied, and what was left out. */
	get progress() {
		const { leftOut } = this.#options;
		return {
			positions: [...this.#positions.values()],
			leftOut: [...leftOut.named],
			leftOutTotal: BigInt(leftOut.total),
		};
	}
}

function positionsOf(positions: readonly TypePosition[]): Map<string, TypePosition> {
	return new Map(positions.flatMap((each) => (each.type ? [[gvkKey(each.type), each]] : [])));
}
