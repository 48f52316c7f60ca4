import { inspect } from "node:util";
import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import {
	CallerToken,
	defineType,
	denied,
	idOf,
	isCrossTenancy,
	needsResource,
	resourceOf,
	TypeRegistry,
} from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { ArtistSchema as ArtistV1Schema } from "../../testdata/gen/acme/demo/v1/demo_pb.ts";
import { AlbumSchema, ArtistSchema } from "../../testdata/gen/acme/demo/v2/demo_pb.ts";
import { Artist } from "../demo.fixture.ts";
import { insecureAllowAll } from "./open-access.ts";
import { PolicyAuthorizer, type PolicyRule } from "./policy-authorizer.ts";
import { createCallerAuthenticator } from "./request-caller.ts";

const target = {
	type: Artist.type,
	tenancy: { partition: "default", namespace: "n" },
	name: "miles",
	isCrossTenancy: true,
};

async function callerWith(rules: readonly PolicyRule[], registry = new TypeRegistry([Artist])) {
	const authorizer = new PolicyAuthorizer();
	authorizer.grant("token", { subject: "alice", rules });
	return createCallerAuthenticator(registry, authorizer).authenticate("token");
}

describe("who may name a target", () => {
	const read: PolicyRule = { operations: ["operator:read"] };
	const reference: PolicyRule = { operations: ["operator:reference"] };

	it.each([
		["nothing", [], true, "alice lacks operator:read on demo.v2.Artist"],
		["reference alone", [reference], true, "alice lacks operator:read on demo.v2.Artist"],
		["read alone", [read], true, "alice lacks operator:reference on demo.v2.Artist"],
		["read alone, in the same namespace", [read], false, undefined],
		["both", [read, reference], true, undefined],
		[
			"both, of other names",
			[read, { ...reference, namePrefix: "j" }],
			true,
			"alice lacks operator:reference on demo.v2.Artist",
		],
		["everything", [{ operations: ["*"] }], true, undefined],
	] as const)("by policies: %s", async (_, rules, elsewhere, message) => {
		const caller = await callerWith(rules);
		const decision = caller.decideReference({ ...target, isCrossTenancy: elsewhere });
		expect(decision).toEqual(
			message === undefined ? { kind: "allowed" } : { kind: "denied", message },
		);
	});

	it("is said by the reference hook of the type, in place of operator:reference", async () => {
		const Hooked = defineType(ArtistSchema, {
			authorize: { reference: ({ subject }, { name }) => denied(`${subject} and ${name}`) },
		});
		const caller = await callerWith([{ operations: ["*"] }], new TypeRegistry([Hooked]));
		expect(caller.decideReference(target)).toEqual({ kind: "denied", message: "alice and miles" });
		expect(caller.decideReference({ ...target, isCrossTenancy: false }).kind).toBe("allowed");
	});

	it("can't get around the hooks of a type by a version that is not registered", async () => {
		const Hooked = defineType(ArtistSchema, {
			authorize: { read: () => denied("nobody reads artists") },
		});
		const caller = await callerWith([{ operations: ["*"] }], new TypeRegistry([Hooked]));
		const type = { ...Artist.type, groupVersion: "v99" };
		expect(caller.decideReference({ ...target, type })).toMatchObject({ kind: "denied" });
	});

	it("is decided by the hook of the version that is stored, not of the one that is named", async () => {
		const seen: string[] = [];
		const hooked = (schema: typeof ArtistSchema | typeof ArtistV1Schema) =>
			defineType(schema, {
				authorize: {
					read: (_access, _id, stored) => {
						if (stored === undefined) {
							return needsResource;
						}
						seen.push(`${schema.typeName} decides on ${stored.data.$typeName}`);
						return denied("not this one");
					},
				},
			});
		const V1 = hooked(ArtistV1Schema);
		const V2 = hooked(ArtistSchema);
		const caller = await callerWith([{ operations: ["*"] }], new TypeRegistry([V1, V2]));
		const stored = resourceOf(V1, { id: idOf(V1, "miles"), data: create(ArtistV1Schema) });
		expect(caller.decideReference(target).kind).toBe("needs-resource");
		expect(caller.decideReference(target, stored)).toEqual(denied("not this one"));
		expect(seen).toEqual(["acme.demo.v1.Artist decides on acme.demo.v1.Artist"]);
	});

	it("takes the plain rights where the type is not registered", async () => {
		const { type } = defineType(AlbumSchema);
		const caller = await callerWith([read]);
		expect(caller.decideReference({ ...target, type, isCrossTenancy: false }).kind).toBe("allowed");
		expect(caller.decideReference({ ...target, type })).toEqual({
			kind: "denied",
			message: "alice lacks operator:reference on demo.v2.Album",
		});
	});

	it("is nobody whose token is not known, unless no tokens are looked at", async () => {
		const registry = new TypeRegistry([Artist]);
		const closed = createCallerAuthenticator(registry, new PolicyAuthorizer());
		await expect(closed.authenticate("token")).rejects.toMatchObject({
			code: Code.Unauthenticated,
		});
		const open = createCallerAuthenticator(registry, insecureAllowAll);
		expect([closed.isOpen, open.isOpen]).toEqual([false, true]);
		expect((await open.authenticate(undefined)).decideReference(target).kind).toBe("allowed");
	});
});

describe("whether a target is in another namespace or partition", () => {
	const inA = { partition: "p", namespace: "a" };

	it.each([
		["the same namespace", inA, inA, false],
		["another namespace", { partition: "p", namespace: "b" }, inA, true],
		[
			"the namespace of that name in another partition",
			{ partition: "q", namespace: "a" },
			inA,
			true,
		],
		["its own partition", { partition: "p", namespace: "" }, inA, false],
		["another partition", { partition: "q", namespace: "" }, inA, true],
		["no partition", { partition: "", namespace: "" }, inA, false],
		["a namespace, from none", inA, { partition: "p", namespace: "" }, true],
		["a partition, from none", { partition: "p" }, {}, true],
	])("%s", (_, to, from, elsewhere) => {
		expect(isCrossTenancy(to, from)).toBe(elsewhere);
	});
});

describe("the token of a caller", () => {
	it("is not printed", () => {
		const token = new CallerToken("secret");
		const printed = [
			inspect({ token }),
			JSON.stringify({ token }),
			`${token}`,
			String({ ...token }),
		];
		expect(printed.join()).not.toContain("secret");
		expect(token.reveal()).toBe("secret");
	});
});
