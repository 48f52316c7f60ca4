import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Fence } from "@plinth/runtime";
import {
	Compare_CompareTarget,
	type CompareSchema,
	type RequestOpSchema,
	type ResponseOp,
} from "../gen/etcdserverpb/rpc_pb.ts";
import type { KeyValue } from "../gen/mvccpb/kv_pb.ts";
import type { Keys } from "../keys.ts";

/** An operation of a transaction. */
export type Operation = MessageInitShape<typeof RequestOpSchema>;
/** A condition of a transaction. */
export type Condition = MessageInitShape<typeof CompareSchema>;

type Requests = NonNullable<Operation["request"]>;

/** An operation of one kind. */
export function operation<C extends NonNullable<Requests["case"]>>(
	kind: C,
	value: Extract<Requests, { case: C }>["value"],
): Operation {
	return { request: { case: kind, value } as Requests };
}

/** The condition that a key was last written at a revision; 0 for a missing key. */
export function atRevision(key: Uint8Array, revision: bigint): Condition {
	return {
		key,
		target: Compare_CompareTarget.MOD,
		targetUnion: { case: "modRevision", value: revision },
	};
}

/** The condition that a key has a value. */
export function hasValue(key: Uint8Array, value: Uint8Array): Condition {
	return { key, target: Compare_CompareTarget.VALUE, targetUnion: { case: "value", value } };
}

/** The condition that a key is missing. */
export function isMissing(key: Uint8Array): Condition {
	return {
		key,
		target: Compare_CompareTarget.CREATE,
		targetUnion: { case: "createRevision", value: 0n },
	};
}

/** The condition that a fence belongs to the holder of its lease. */
export function heldBy({ lease, token }: Fence, keys: Keys): Condition {
	// An invalid token matches no holder: keys are created at revisions from 2 on.
	const revision = /^[1-9]\d{0,17}$/.test(token) ? BigInt(token) : 1n;
	return {
		key: keys.lease(lease),
		target: Compare_CompareTarget.CREATE,
		targetUnion: { case: "createRevision", value: revision },
	};
}

/** The key read by an operation of a transaction, if it exists. */
export function keyOf({ response }: ResponseOp): KeyValue | undefined {
	return response.case === "responseRange" ? response.value.kvs[0] : undefined;
}
