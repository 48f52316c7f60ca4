import type { InboundCall } from "../inbound-call.ts";

const unitMs: Readonly<Record<string, number>> = {
	H: 3_600_000,
	M: 60_000,
	S: 1_000,
	m: 1,
	u: 1e-3,
	n: 1e-6,
};

/**
 * The time that the client gives a call, in milliseconds; `undefined` if it is not limited. A malformed value is no limit
 * here: the server refuses it.
 */
export function timeoutMs(call: Pick<InboundCall, "header">): number | undefined {
	const grpc = /^(?<value>\d{1,8})(?<unit>[HMSmun])$/.exec(
		call.header("grpc-timeout") ?? "",
	)?.groups;
	if (grpc !== undefined) {
		return Number(grpc.value) * (unitMs[grpc.unit ?? ""] ?? Number.NaN);
	}
	const connect = call.header("connect-timeout-ms") ?? "";
	return /^\d{1,10}$/.test(connect) ? Number(connect) : undefined;
}
