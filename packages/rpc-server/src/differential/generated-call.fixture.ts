import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { ReadRequestSchema, WatchListRequestSchema } from "@plinth/proto";
import { seededRandom } from "@plinth/runtime/testing";
import { behaviors } from "./behaving-service.fixture.ts";

/** A request, as it arrives. */
export interface GeneratedCall {
	readonly httpVersion: string;
	readonly method: string;
	readonly target: string;
	readonly headers: Readonly<Record<string, string>>;
	readonly chunks: readonly Uint8Array[];
	/** What was done to a good request. */
	readonly faults: readonly string[];
}

type Pick = <T>(...values: readonly T[]) => T;

const contentTypes = {
	unary: [
		...["application/grpc", "application/grpc+proto", "application/grpc+json"],
		...["application/grpc-web", "application/grpc-web+proto", "application/grpc-web+json"],
		...["application/proto", "application/json", "application/json; charset=utf-8"],
	],
	stream: [
		...["application/grpc", "application/grpc+proto", "application/grpc+json"],
		...["application/grpc-web+proto", "application/grpc-web+json"],
		...["application/connect+proto", "application/connect+json"],
	],
	unusual: [
		"",
		"text/plain",
		"application/grpc-web-text",
		"application/JSON",
		"application/connect+proto",
	],
} as const;

/** A call to a method of the behaving service, good or malformed, as the seed determines. */
export function generatedCall(seed: number): GeneratedCall {
	const random = seededRandom(seed);
	const pick: Pick = (...values) => {
		const value = values[Math.floor(random.next() * values.length)];
		if (value === undefined) {
			throw new Error("there is nothing to pick from");
		}
		return value;
	};
	const rarely = () => random.next() < 0.12;
	const isStream = random.next() < 0.4;
	const behavior = pick(...behaviors);
	const faults: string[] = [];
	const isOdd = rarely();
	const contentType = isOdd
		? pick(...contentTypes.unusual)
		: pick(...(isStream ? contentTypes.stream : contentTypes.unary));
	const path = `/plinth.resource.v1.ResourceService/${isStream ? "WatchList" : "Read"}`;
	const headers: Record<string, string> = { ...timeout(pick, contentType, rarely(), faults) };
	if (rarely()) {
		headers[pick("grpc-encoding", "content-encoding", "connect-content-encoding")] = pick(
			"identity",
			"gzip",
		);
	}
	if (random.next() < 0.3) {
		headers[pick("grpc-accept-encoding", "accept-encoding")] = "gzip, br";
	}
	if (random.next() < 0.3) {
		headers["x-echo"] = pick("a", " spaced ", "b, c");
	}
	const httpVersion = pick("1.1", "2.0");
	const isJson = contentType.includes("json") || contentType.includes("JSON");
	const message = messageOf(isStream, behavior, isJson);
	if (!isStream && random.next() < 0.2) {
		const target = `${path}?${query(pick, message, isJson, rarely(), faults)}`;
		return { httpVersion, method: "GET", target, headers, chunks: [], faults };
	}
	if (contentType !== "") {
		headers["content-type"] = contentType;
	}
	const isEnveloped = /grpc|connect/.test(contentType);
	const body = malformed(pick, rarely() || rarely(), isEnveloped, message, faults);
	if (!isEnveloped && random.next() < 0.5) {
		headers["content-length"] = String(body.byteLength + (rarely() ? pick(-1, 1, 100_000) : 0));
	}
	const chunks = random.next() < 0.7 || faults.length > 1 ? [body] : halves(random.next(), body);
	return {
		httpVersion,
		method: rarely() ? pick("PUT", "OPTIONS") : "POST",
		target: path,
		headers,
		chunks,
		faults,
	};
}

function messageOf(isStream: boolean, behavior: string, isJson: boolean): Uint8Array {
	if (isStream) {
		const request = create(WatchListRequestSchema, { namePrefix: behavior });
		return isJson
			? Buffer.from(toJsonString(WatchListRequestSchema, request))
			: toBinary(WatchListRequestSchema, request);
	}
	const request = create(ReadRequestSchema, { id: { name: behavior } });
	return isJson
		? Buffer.from(toJsonString(ReadRequestSchema, request))
		: toBinary(ReadRequestSchema, request);
}

function timeout(
	pick: Pick,
	contentType: string,
	isOdd: boolean,
	faults: string[],
): Readonly<Record<string, string>> {
	if (pick(true, false, false)) {
		return {};
	}
	const isGrpc = contentType.includes("grpc");
	if (isOdd) {
		faults.push("timeout");
	}
	const value = isOdd
		? pick("-1", "", "1.5S", "99999999999", "1h")
		: pick(...(isGrpc ? ["10S", "1M", "50000m"] : ["10000", "60000"]));
	return { [isGrpc ? "grpc-timeout" : "connect-timeout-ms"]: value };
}

function query(
	pick: Pick,
	message: Uint8Array,
	isJson: boolean,
	isOdd: boolean,
	faults: string[],
): string {
	const params = new URLSearchParams({ encoding: isJson ? "json" : "proto", connect: "v1" });
	if (isJson && pick(true, false)) {
		params.set("message", Buffer.from(message).toString());
	} else {
		params.set("base64", "1");
		params.set("message", Buffer.from(message).toString(pick("base64", "base64url")));
	}
	if (isOdd) {
		faults.push("query");
		const [name, value] = pick(
			["encoding", "text"],
			["message", "%%%"],
			["message", "{"],
			["compression", "gzip"],
			["base64", "2"],
		);
		params.set(name, value);
	}
	return String(params);
}

/** The body with the message, or a malformed one. */
function malformed(
	pick: Pick,
	isOdd: boolean,
	isEnveloped: boolean,
	message: Uint8Array,
	faults: string[],
): Uint8Array {
	const whole = (flags: number, data: Uint8Array) =>
		isEnveloped ? encodeEnvelope(flags, data) : data;
	const good = whole(0, message);
	if (!isOdd) {
		return good;
	}
	const fault = pick(
		"cut",
		"empty",
		"garbage",
		"twice",
		"long",
		"compressed",
		"end",
		"zeros",
		"field",
	);
	faults.push(fault);
	switch (fault) {
		case "cut":
			return good.subarray(0, Math.max(0, good.byteLength - pick(1, 3, 5)));
		case "empty":
			return new Uint8Array();
		case "garbage":
			return whole(0, Buffer.from([0xff, 0xfe, 0x07, 0x7b, 0x22]));
		case "twice":
			return Buffer.concat([good, whole(0, pick(message, Buffer.from([0xff])))]);
		case "long":
			return whole(0, Buffer.concat([message, Buffer.alloc(10_000, " ")]));
		case "compressed":
			return whole(1, message);
		case "end":
			return Buffer.concat([good, whole(pick(2, 128), message)]);
		case "field":
			return whole(0, Buffer.from('{"noSuchField":1}'));
		default:
			return Buffer.concat([good, Buffer.alloc(pick(1, 4, 5))]);
	}
}

function halves(share: number, body: Uint8Array): readonly Uint8Array[] {
	const at = Math.floor(share * body.byteLength);
	return [body.subarray(0, at), body.subarray(at)].filter(({ byteLength }) => byteLength > 0);
}
