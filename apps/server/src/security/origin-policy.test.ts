import { hostname } from "node:os";
import { insecureAllowAll } from "@plinth/resource-service";
import { describe, expect, it } from "vitest";
import { originPolicy } from "./origin-policy.ts";

const etcd = { kind: "etcd", endpoints: ["http://127.0.0.1:2379"] } as const;

describe("the hosts that a server without tokens accepts", () => {
	it("include the one in the address at which the other servers of its cluster reach it", () => {
		const hosts = (...[options, host]: [Parameters<typeof originPolicy>[0], string]) => [
			...(originPolicy(options, { host, port: 7575 }, insecureAllowAll).allowedHosts ?? []),
		];
		const advertisedAddress = "http://One.example:7575";
		expect(hosts({ storage: etcd, advertisedAddress }, "10.0.0.1")).toContain("one.example");
		expect(hosts({ storage: etcd }, "0.0.0.0")).toContain(hostname().toLowerCase());
		expect(hosts({ storage: { kind: "memory" } }, "0.0.0.0")).toEqual(["0.0.0.0"]);
		expect(hosts({ storage: etcd }, "10.0.0.1")).toEqual(["10.0.0.1"]);
	});
});
