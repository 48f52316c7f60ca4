import { type Registry, toJsonString } from "@bufbuild/protobuf";
import { ResourceService } from "@plinth/proto";
import type { Random } from "@plinth/runtime";
import { pick } from "../simulation/simulation.fixture.ts";
import { bendBytes, bendJson, oddJson, randomBytes } from "./mutations.fixture.ts";
import { enveloped, type WireRequest } from "./port.fixture.ts";
import { binaryOf, drawRequest, type ValidRequest } from "./valid-requests.fixture.ts";

/** How long a stream may run, in milliseconds. */
const streamMs = 10;

/** A request over one of the protocols: valid, mutated in one place, or random. */
export function drawWireRequest(random: Random, messages: Registry): WireRequest {
	const request = drawRequest(random);
	const protocol = pick(random, ["JSON", "binary", "gRPC", "gRPC with JSON", "GET"]);
	const isJson = protocol === "JSON" || protocol === "gRPC with JSON" || protocol === "GET";
	const path = `/${ResourceService.typeName}/${request.method.name}`;
	const body = isJson ? drawJson(random, request, messages) : drawBinary(random, request);
	const isStream = request.method.methodKind === "server_streaming";
	switch (protocol) {
		case "gRPC":
		case "gRPC with JSON": {
			const suffix = protocol === "gRPC" ? pick(random, ["", "+proto"]) : "+json";
			return {
				path,
				headers: {
					"content-type": `application/grpc${suffix}`,
					"grpc-timeout": `${streamMs * 100}m`,
					...(isStream && { "grpc-timeout": `${streamMs}m` }),
				},
				body: drawEnvelope(random, body),
			};
		}
		case "GET":
			if (isStream || body.length > 4_000) {
				break;
			}
			return {
				path: `${path}?connect=v1&encoding=json&message=${encodeURIComponent(Buffer.from(body).toString())}`,
				headers: {},
			};
	}
	const format = isJson ? "json" : "proto";
	return isStream
		? {
				path,
				headers: {
					"content-type": `application/connect+${format}`,
					"connect-timeout-ms": String(streamMs),
				},
				body: drawEnvelope(random, body),
			}
		: { path, headers: { "content-type": `application/${format}` }, body };
}

function drawJson(random: Random, request: ValidRequest, messages: Registry): Uint8Array {
	let text: string;
	try {
		text = toJsonString(request.method.input, request.message, { registry: messages });
	} catch {
		// It holds what JSON has no form for.
		text = "{}";
	}
	const drawn = random.next();
	return Buffer.from(drawn < 0.2 ? text : drawn < 0.9 ? bendJson(random, text) : oddJson(random));
}

function drawBinary(random: Random, request: ValidRequest): Uint8Array {
	const bytes = binaryOf(request);
	const drawn = random.next();
	return drawn < 0.2 ? bytes : drawn < 0.85 ? bendBytes(random, bytes) : randomBytes(random, 200);
}

/** An envelope around the message, sometimes an invalid one. */
function drawEnvelope(random: Random, bytes: Uint8Array): Uint8Array {
	const drawn = random.next();
	if (drawn < 0.92) {
		return enveloped(bytes);
	}
	if (drawn < 0.96) {
		return enveloped(bytes, Math.floor(random.next() * 256));
	}
	return bendBytes(random, enveloped(bytes));
}
