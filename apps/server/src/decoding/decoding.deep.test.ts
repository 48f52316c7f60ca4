import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { idOf, Namespace } from "@plinth/resource";
import { tokenHash } from "@plinth/resource-service";
import { runs } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { filesOf } from "../certificates.fixture.ts";
import { ServerProcess } from "../server-process.fixture.ts";
import { type RawCall, rawCall } from "./raw-call.fixture.ts";

/** How often each attack is repeated. */
const rounds = runs(1);

const path = "/plinth.resource.v1.ResourceService/Write";

/** A write of a resource with that many owner references, all of them empty: three bytes each. */
function emptyMessages(count: number): Buffer {
	const resource = Buffer.alloc(3 * count);
	for (let at = 0; at < resource.length; at += 3) {
		resource.set([0xa2, 0x06, 0x00], at);
	}
	const head = [0x0a];
	for (let length = resource.length; length > 0; length >>>= 7) {
		head.push((length & 0x7f) | (length > 0x7f ? 0x80 : 0));
	}
	return Buffer.concat([Buffer.from(head), resource]);
}

/** The same in JSON. */
function emptyMessagesJson(count: number): Buffer {
	return Buffer.from(`{"resource":{"ownerReferences":[${"{},".repeat(count - 1)}{}]}}`);
}

/**
 * A server in a process of its own, and what a reader with rights sees while a token without rights sends
 * `calls` messages at once, some times in a row.
 */
async function underAttack(
	name: string,
	contentType: string,
	message: Buffer,
	calls: number,
	settings: readonly string[] = [],
): Promise<ReadonlyMap<string, number>> {
	const token = (subject: string, policy: string) =>
		`  - { subject: ${subject}, sha256: ${tokenHash(subject)}, policies: [${policy}] }\n`;
	const { access } = filesOf({
		access: `policies: { all: [{ operations: ["*"] }], none: [] }\ntokens:\n${token("alice", "all")}${token("mallory", "none")}`,
	});
	const server = new ServerProcess(
		...["--listen", "127.0.0.1:0", "--storage", "memory", "--access-file", access],
		...["--log-level", "error", ...settings],
	);
	const address = await server.listening();
	const client = createClient(
		ResourceService,
		createConnectTransport({ baseUrl: address, httpVersion: "2" }),
	);
	const headers = { authorization: "Bearer alice" };
	const outcomes = new Map<string, number>();
	const call: RawCall = {
		...{ http: 1, path, body: message, ends: true },
		headers: { "content-type": contentType, authorization: "Bearer mallory" },
	};
	const waits: number[] = [];
	for (let round = 0; round < rounds; round += 1) {
		let running = calls;
		const attack = Array.from({ length: calls }, async () => {
			const response = await rawCall(address, call);
			running -= 1;
			const code = /"code":"(\w+)"/.exec(response)?.[1] ?? response;
			outcomes.set(code, (outcomes.get(code) ?? 0) + 1);
		});
		while (running > 0) {
			const startMs = performance.now();
			await client.read({ id: idOf(Namespace, "default") }, { headers });
			waits.push(performance.now() - startMs);
			await new Promise((resolve) => setTimeout(resolve, 1));
		}
		await Promise.all(attack);
	}
	waits.sort((a, b) => a - b);
	const longest = waits.at(-1) ?? Number.NaN;
	const p99 = waits[Math.floor(0.99 * waits.length)] ?? Number.NaN;
	process.stdout.write(
		`${name}: others waited ${longest.toFixed(0)} ms at most, p99 ${p99.toFixed(0)} ms, in ${waits.length} reads; ${JSON.stringify([...outcomes])}\n`,
	);
	return outcomes;
}

const withoutLimit = ["--limits-message-fields", "100000000"];

describe("six messages at once from a token without rights", () => {
	it("of 1.3 million empty messages are refused, all of them, before they are decoded", async () => {
		const message = emptyMessages(1_300_000);
		const before = await underAttack(
			"1.3 M, no limit",
			"application/proto",
			message,
			1,
			withoutLimit,
		);
		expect([...before.keys()]).not.toContain("resource_exhausted");
		const after = await underAttack("1.3 M", "application/proto", message, 6);
		expect([...after]).toEqual([["resource_exhausted", 6 * rounds]]);
	});

	it("of a million empty objects in JSON are refused likewise", async () => {
		const message = emptyMessagesJson(1_000_000);
		const before = await underAttack(
			"1 M in JSON, no limit",
			"application/json",
			message,
			1,
			withoutLimit,
		);
		expect([...before.keys()]).not.toContain("resource_exhausted");
		const after = await underAttack("1 M in JSON", "application/json", message, 6);
		expect([...after]).toEqual([["resource_exhausted", 6 * rounds]]);
	});

	it("of as many fields as the limit lets through are decoded one at a time", async () => {
		const binary = await underAttack("249,000", "application/proto", emptyMessages(249_000), 6);
		const json = await underAttack(
			"249,000 in JSON",
			"application/json",
			emptyMessagesJson(249_000),
			6,
		);
		for (const outcomes of [binary, json]) {
			expect([...outcomes.values()]).toEqual([6 * rounds]);
			expect([...outcomes.keys()]).not.toContain("resource_exhausted");
		}
	});
});
