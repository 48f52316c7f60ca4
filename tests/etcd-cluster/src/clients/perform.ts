import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { decode, idOf, resourceOf } from "@plinth/resource";
import { ArtistSchema } from "@plinth/resource-service/testing";
import type { Call, Operation, Outcome } from "../history/history.ts";
import { Register } from "../module/types.ts";
import type { Life, ResourceClient } from "./life.ts";

/** How long a client waits for a response, in milliseconds: longer than a server waits for etcd. */
const timeoutMs = 7_000;
const consistent = { "x-plinth-consistency-mode": "consistent" };

/** Does a call to a register, and notes what came of it. */
export async function perform(
	life: Life,
	register: string,
	call: Call,
	strong: boolean,
): Promise<Operation> {
	const startMs = performance.now();
	const outcome = await outcomeOf(life.client, register, call, strong);
	return { register, life: life.number, strong, call, outcome, startMs, endMs: performance.now() };
}

/** The text of a register. */
export function textOf(resource: Resource | undefined): string {
	return resource === undefined ? "" : decode(Register, resource).data.genre;
}

async function outcomeOf(
	client: ResourceClient,
	register: string,
	call: Call,
	strong: boolean,
): Promise<Outcome> {
	const id = idOf(Register, register);
	try {
		switch (call.kind) {
			case "read": {
				const headers = strong ? consistent : {};
				return value((await client.read({ id }, { headers, timeoutMs })).resource);
			}
			case "delete": {
				const { version } = await client.delete({ id, version: call.version }, { timeoutMs });
				return version === "" ? { kind: "absent" } : { kind: "deleted", version };
			}
			default: {
				const data = create(ArtistSchema, { genre: call.text });
				const resource = resourceOf(Register, { id, data });
				if (call.kind === "compare-and-swap") {
					resource.version = call.version;
				}
				return value((await client.write({ resource }, { timeoutMs })).resource);
			}
		}
	} catch (error) {
		return failure(error);
	}
}

function value(resource: Resource | undefined): Outcome {
	return { kind: "value", version: resource?.version ?? "", text: textOf(resource) };
}

function failure(error: unknown): Outcome {
	if (!(error instanceof ConnectError)) {
		throw error;
	}
	const { code, rawMessage } = error;
	if (code === Code.NotFound && rawMessage === "resource not found") {
		return { kind: "absent" };
	}
	// Broken connections are Aborted too.
	if (code === Code.Aborted && rawMessage.startsWith("CAS operation failed")) {
		return { kind: "conflict" };
	}
	if (code === Code.Aborted && rawMessage.startsWith("write conflicted with concurrent writes")) {
		return { kind: "not-done" };
	}
	return { kind: "unknown", why: `${Code[code]}: ${rawMessage}` };
}
