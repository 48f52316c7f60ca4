import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { EtcdClient } from "../client/etcd-client.ts";
import { EtcdError } from "../client/etcd-error.ts";
import { StorePosition } from "../client/store-position.ts";
import {
	type Compare,
	Compare_CompareResult,
	Compare_CompareTarget,
	type RangeRequest,
	RangeRequestSchema,
	type RangeResponse,
	RangeResponseSchema,
	type RequestOp,
	type TxnRequest,
	TxnRequestSchema,
	type TxnResponse,
	TxnResponseSchema,
} from "../gen/etcdserverpb/rpc_pb.ts";
import { type KeyValue, KeyValueSchema } from "../gen/mvccpb/kv_pb.ts";
import { keyText } from "../keys.ts";

/** A revision, and what it put. */
export interface ModelRevision {
	readonly puts: ReadonlyMap<string, Uint8Array>;
	/** Tells revisions of the same number in different histories apart. */
	readonly identity: object;
}

/** What etcd does with ranges of one key and with transactions, in memory, one revision after the other. */
export class ModelEtcd {
	/** What happened, in order; the first one has revision 2, as in etcd. */
	history: readonly ModelRevision[] = [];

	/** The newest revision. */
	get revision(): bigint {
		return BigInt(this.history.length + 1);
	}

	/** Puts it back to what it was after so many revisions. */
	restore(length: number): void {
		this.history = this.history.slice(0, length);
	}

	range({ key, revision }: RangeRequest): RangeResponse {
		if (revision > this.revision) {
			throw new EtcdError("refused", "required revision is a future revision", Code.OutOfRange);
		}
		const found = this.#lookup(keyText(key), revision === 0n ? this.revision : revision);
		return create(RangeResponseSchema, { header: this.#header(), kvs: found ? [found] : [] });
	}

	transaction({ compare, success, failure }: TxnRequest): TxnResponse {
		const succeeded = compare.every((each) => this.#holds(each));
		const operations = succeeded ? success : failure;
		const puts = new Map(operations.flatMap(putOf));
		if (puts.size > 0) {
			this.history = [...this.history, { puts, identity: {} }];
		}
		const responses = operations.map(({ request }) =>
			request.case === "requestRange"
				? { response: { case: "responseRange" as const, value: this.range(request.value) } }
				: {},
		);
		return create(TxnResponseSchema, { header: this.#header(), succeeded, responses });
	}

	#header() {
		return { clusterId: 1n, revision: this.revision, raftTerm: 2n };
	}

	#holds({ key, target, result, targetUnion }: Compare): boolean {
		const found = this.#lookup(keyText(key), this.revision);
		switch (target) {
			case Compare_CompareTarget.VALUE:
				return (
					targetUnion.case === "value" &&
					found !== undefined &&
					Buffer.compare(found.value, targetUnion.value) === 0
				);
			case Compare_CompareTarget.MOD: {
				const revision = found?.modRevision ?? 0n;
				const compared = targetUnion.case === "modRevision" ? targetUnion.value : 0n;
				return result === Compare_CompareResult.GREATER
					? revision > compared
					: revision === compared;
			}
			default:
				throw new RangeError(`the model does not compare target ${target}`);
		}
	}

	#lookup(key: string, revision: bigint): KeyValue | undefined {
		for (let index = Number(revision) - 2; index >= 0; index--) {
			const value = this.history[index]?.puts.get(key);
			if (value !== undefined) {
				const modRevision = BigInt(index + 2);
				return create(KeyValueSchema, { key: Buffer.from(key), value, modRevision });
			}
		}
		return undefined;
	}
}

/** A client of the model, for one server. */
export function modelClient(etcd: ModelEtcd): EtcdClient {
	const position = new StorePosition();
	const checked = <T extends RangeResponse | TxnResponse>(call: () => T): T => {
		const before = position.known;
		const response = call();
		position.check(before, response.header);
		return response;
	};
	const client: Pick<EtcdClient, "position" | "range" | "readTransaction" | "transaction"> = {
		position,
		range: async (request) => checked(() => etcd.range(create(RangeRequestSchema, request))),
		readTransaction: async (request) =>
			checked(() => etcd.transaction(create(TxnRequestSchema, request))),
		transaction: async (request) => checked(() => etcd.transaction(request)),
	};
	// What the history uses of a client.
	return client as EtcdClient;
}

function putOf({ request }: RequestOp): readonly (readonly [string, Uint8Array])[] {
	return request.case === "requestPut" ? [[keyText(request.value.key), request.value.value]] : [];
}
