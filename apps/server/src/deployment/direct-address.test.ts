import { hostname } from "node:os";
import { type Logger, silentLogger } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import type { StorageOptions } from "../storage/open-storage.ts";
import { directAddress } from "./direct-address.ts";

const etcd: StorageOptions = { kind: "etcd", endpoints: ["http://127.0.0.1:2379"] };

function deployment(address: string, host: string, port = 7576) {
	const internalListen = { host, port };
	return {
		...{ service: "music", region: "r1", metaAddresses: [], credentialFile: "secret" },
		...{ address, internalListen },
	};
}

describe("the direct address of a server", () => {
	it.each([
		["10.0.0.1", undefined, "http://10.0.0.1:7576"],
		["10.0.0.1", "https://one.example:7575", "http://10.0.0.1:7576"],
		["two.example", "https://one.example:7575", "http://two.example:7576"],
		["127.0.0.1", "https://one.example:7575", "http://one.example:7576"],
		["plinth.1", "https://one.example:7575", "http://one.example:7576"],
		["fd00::1", undefined, "http://[fd00::1]:7576"],
		["0.0.0.0", undefined, `http://${hostname().toLowerCase()}:7576`],
		["0.0.0.0", "https://one.example:7575", "http://one.example:7576"],
		["0.0.0.0", "http://[fd00::1]:7575", "http://[fd00::1]:7576"],
	])("that listens on %s and advertises %s is %s", (host, advertised, direct) => {
		const options = {
			storage: etcd,
			deployment: deployment("http://balancer", host),
			...(advertised !== undefined && { advertisedAddress: advertised }),
		};
		expect(directAddress(options, silentLogger)).toBe(direct);
		const tls = { certFile: "cert", keyFile: "key" };
		expect(directAddress({ ...options, tls }, silentLogger)).toBe(
			direct.replace("http:", "https:"),
		);
	});

	it("is not another one than it announces if that is the default, or no other server can exist", () => {
		const advertisedAddress = "http://one.example:7575";
		const of = (options: Parameters<typeof directAddress>[0]) =>
			directAddress(options, silentLogger);
		const alone = deployment("http://0.0.0.0:7576", "0.0.0.0");
		expect(of({ storage: etcd, advertisedAddress, deployment: alone })).toBeUndefined();
		const behind = deployment("http://balancer", "10.0.0.1");
		expect(of({ storage: { kind: "memory" }, deployment: behind })).toBeUndefined();
		const anyPort = deployment("http://balancer", "10.0.0.1", 0);
		expect(of({ storage: etcd, deployment: anyPort })).toBeUndefined();
		expect(of({ storage: etcd })).toBeUndefined();
	});

	it("is none if the host name can't be part of a URL, unless it advertises an address", () => {
		const warnings: string[] = [];
		const log: Logger = { ...silentLogger, warn: (_, message) => warnings.push(message) };
		const options = { storage: etcd, deployment: deployment("http://balancer", "0.0.0.0") };
		const advertisedAddress = "http://one.example:7575";
		expect(directAddress({ ...options, advertisedAddress }, log, "plinth.1")).toBe(
			"http://one.example:7576",
		);
		expect(warnings).toEqual([]);
		expect(directAddress(options, log, "plinth.1")).toBeUndefined();
		expect(warnings).toEqual([
			"the other servers of this deployment can't call this one directly: its address is not a valid URL. Set --advertised-address to a host by which they reach it",
		]);
	});
});
