import { hostname } from "node:os";
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
		expect(directAddress(options)).toBe(direct);
		const tls = { certFile: "cert", keyFile: "key" };
		expect(directAddress({ ...options, tls })).toBe(direct.replace("http:", "https:"));
	});

	it("is not another one than it announces if that is the default, or no other server can exist", () => {
		const advertisedAddress = "http://one.example:7575";
		const alone = deployment("http://0.0.0.0:7576", "0.0.0.0");
		expect(directAddress({ storage: etcd, advertisedAddress, deployment: alone })).toBeUndefined();
		const behind = deployment("http://balancer", "10.0.0.1");
		expect(directAddress({ storage: { kind: "memory" }, deployment: behind })).toBeUndefined();
		const anyPort = deployment("http://balancer", "10.0.0.1", 0);
		expect(directAddress({ storage: etcd, deployment: anyPort })).toBeUndefined();
		expect(directAddress({ storage: etcd })).toBeUndefined();
	});
});
