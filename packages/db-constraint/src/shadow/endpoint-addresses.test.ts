import { create } from "@bufbuild/protobuf";
import { EndpointSchema } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { describe, expect, it } from "vitest";
import {
	addressesIn,
	announcedAddresses,
	type EndpointAddresses,
	endpointName,
	siblingsOf,
} from "./endpoint-addresses.ts";

const shared = "http://balancer";
const behind = (direct: string) => ({ announced: shared, direct });
const alone = (address: string) => ({ announced: address, direct: address });

/** The servers with these addresses, by the names of their records. */
function records(...all: readonly EndpointAddresses[]) {
	return new Map(all.map((each) => [endpointName(each), each]));
}

function siblingAddresses(own: EndpointAddresses, ...all: readonly EndpointAddresses[]) {
	return siblingsOf(own, records(...all)).map(({ address }) => address);
}

describe("the other servers of a deployment", () => {
	const [one, two] = [behind("http://one"), behind("http://two")];

	it("are called at their direct addresses if they announce the same one", () => {
		expect(siblingAddresses(one, one, two)).toEqual([two.direct]);
		expect(siblingAddresses(alone("http://three"), one, two)).toEqual([one.direct, two.direct]);
	});

	it("that are older than direct addresses are called at the announced one, although this server has it too", () => {
		expect(siblingAddresses(one, alone(shared))).toEqual([shared]);
	});

	it("are called at their announced addresses if each has its own, also behind equal direct ones", () => {
		const proxied = (announced: string) => ({ announced, direct: "http://127.0.0.1:7576" });
		const [a, b] = [proxied("http://a"), proxied("http://b")];
		expect(siblingAddresses(a, a, b)).toEqual([b.announced]);
		expect(siblingAddresses(alone("http://c"), a, b)).toEqual([a.announced, b.announced]);
	});
});

describe("the addresses of a server", () => {
	it("are one for a server that is older than direct addresses, whose record keeps its name", () => {
		const old = addressesIn(create(EndpointSchema, { address: "http://10.0.0.1:7576" }));
		expect(old).toEqual(alone("http://10.0.0.1:7576"));
		expect(endpointName(old)).toBe("endpoint-7a9ea7712683717bd1cf694ccbc30be0c6c13261");
	});

	it("are announced once where several servers have the same one", () => {
		const servers = records(behind("http://one"), behind("http://two"), alone("http://three"));
		expect(servers.size).toBe(3);
		expect(announcedAddresses(servers)).toEqual([shared, "http://three"]);
	});
});
