import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { AnySchema, DurationSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import type { ResourceService, WatchEventSchema } from "@plinth/proto";

/** What an implementation may do. Requests name one. */
export const behaviors = [
	...[
		"respond",
		"headers",
		"refuse",
		"details",
		"metadata",
		"bug",
		"foreign",
		"read",
		"unsendable",
	],
	...["large", "unencodable"],
] as const;

/** Does what the request says, short of the response itself. */
function behave(behavior: string, call: HandlerContext): void {
	switch (behavior) {
		case "headers":
			call.responseHeader.set("x-header", "ü 1");
			call.responseHeader.append("x-header", "2");
			call.responseTrailer.set("x-trailer", "3");
			return;
		case "refuse":
			throw new ConnectError("refused: ü", Code.PermissionDenied);
		case "details": {
			const error = new ConnectError("with details", Code.FailedPrecondition, undefined, [
				{ desc: DurationSchema, value: { seconds: 7n } },
			]);
			call.responseTrailer.set("x-trailer", "set before");
			throw error;
		}
		case "metadata":
			throw new ConnectError("with metadata", Code.Aborted, {
				"x-meta": "1",
				"content-type": "no",
			});
		case "bug":
			throw new TypeError("confidential");
		case "foreign": {
			const error = new ConnectError("from elsewhere", Code.NotFound, { "x-meta": "1" });
			error.isWireError = true;
			throw error;
		}
		case "unsendable":
			throw new ConnectError("", Code.Unknown);
		default:
	}
}

/** What the implementation sees of the call, which is sent back. */
function seen(call: HandlerContext): string {
	const { method, service, protocolName, requestMethod, url, requestHeader, timeoutMs } = call;
	const { pathname, search } = new URL(url);
	const headers = [...requestHeader].sort().map((entry) => entry.join("="));
	const left = timeoutMs();
	const timeout = left === undefined ? "none" : left > 5_000;
	return [
		...[method.name, service.typeName, protocolName, requestMethod, pathname, search, timeout],
		...[
			requestHeader.get("X-Echo"),
			requestHeader.has("x-absent"),
			call.signal.aborted,
			...headers,
		],
	].join("\n");
}

/** A service whose requests say what it does: the name of an ID, or a prefix of names. */
export const behavingService: Partial<ServiceImpl<typeof ResourceService>> = {
	read: async ({ id }, call) => {
		const behavior = id?.name ?? "";
		behave(behavior, call);
		const name = behavior === "read" ? seen(call) : behavior;
		if (behavior === "unencodable") {
			return { resource: { data: create(AnySchema, { typeUrl: "type.googleapis.com/no.Such" }) } };
		}
		const metadata = behavior === "large" ? { size: "x".repeat(100_000) } : {};
		return { resource: { id: { name }, metadata } };
	},
	async *watchList(
		{ namePrefix: behavior },
		call,
	): AsyncGenerator<MessageInitShape<typeof WatchEventSchema>, undefined> {
		const version = behavior === "read" ? seen(call) : behavior;
		if (behavior === "headers") {
			behave(behavior, call);
		}
		yield { event: { case: "bookmark", value: {} }, version };
		if (behavior === "large") {
			for (let index = 0; index < 100; index += 1) {
				yield { version: "x".repeat(2_000) };
			}
		}
		behave(behavior, call);
		if (behavior === "unencodable") {
			const data = create(AnySchema, { typeUrl: "type.googleapis.com/no.Such" });
			yield { event: { case: "upsert", value: { resource: { data } } } };
		}
		yield { version: "last" };
		return undefined;
	},
};
