import { writeFileSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
import {
	deletionTimestampKey,
	finalizersKey,
	idOf,
	Namespace,
	newUlid,
	referenceTo,
	resourceOf,
} from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import { TourSchema } from "../../testdata/gen/tours/v1/tours_pb.ts";
import { Artist, musicModule, Tour, toursModule } from "../../testdata/music.ts";
import { clientAs, outcome, ownedBySecret, secret, tokensOf } from "../callers.fixture.ts";
import { filesOf } from "../certificates.fixture.ts";
import { startServer } from "../started-server.fixture.ts";

const rules = `
policies:
  everything: [{ operations: ["*"] }]
  in-a: [{ operations: [operator:read, operator:write], namespace: a }]
  in-secret: [{ operations: [operator:read, operator:write], namespace: secret }]
  read-secret: [{ operations: [operator:read], namespace: secret }]
  reference-secret: [{ operations: [operator:reference], namespace: secret }]
`;

const users = {
	admin: "everything",
	alice: "in-a",
	keeper: "in-secret",
	reader: "in-a, read-secret",
	linker: "in-a, read-secret, reference-secret",
	blind: "in-a, reference-secret",
};

async function startSecured() {
	const files = filesOf({ access: rules + tokensOf(users) });
	const server = await startServer({
		modules: [musicModule(), toursModule()],
		access: { file: files.access },
	});
	for (const name of ["a", "secret"]) {
		await server.client.write({ resource: resourceOf(Namespace, { id: idOf(Namespace, name) }) });
	}
	const { resource: payroll } = await server.client.write({
		resource: resourceOf(Artist, { id: payrollId }),
	});
	const held = resourceOf(Artist, { id: secret("held"), metadata: { [finalizersKey]: "hold" } });
	await server.client.write({ resource: held });
	await server.client.delete({ id: secret("held") });
	return { server, file: files.access, payrollUid: payroll?.id?.uid ?? "" };
}

const payrollId = secret("payroll");

/** A tour in a namespace that references an artist of the namespace `secret`. */
function tour(name: string, artist?: string, namespace = "a") {
	const data = create(
		TourSchema,
		artist === undefined ? {} : { artist: referenceTo(secret(artist)) },
	);
	return resourceOf(Tour, { id: idOf(Tour, name, { namespace }), data });
}

describe("a reference to what the caller may not read", () => {
	it("is refused as a Read is, whether or not there is a target, by each method and each way to name it", async () => {
		const { server, payrollUid } = await startSecured();
		const client = clientAs(server, "alice");
		const uids = {
			payroll: payrollUid,
			held: newUlid(systemRuntime),
			nobody: newUlid(systemRuntime),
		};
		const outcomes: Record<string, string> = {};
		for (const [name, uid] of Object.entries(uids)) {
			outcomes[`read ${name}`] = await outcome(client.read({ id: secret(name) }));
			const ways = {
				field: tour("t", name),
				owner: { ...tour("t"), owner: secret(name) },
				"owner with uid": { ...tour("t"), owner: { ...secret(name), uid } },
				"owner reference": { ...tour("t"), ownerReferences: [ownedBySecret(name, uid)] },
			};
			for (const [way, resource] of Object.entries(ways)) {
				outcomes[`write ${way} ${name}`] = await outcome(client.write({ resource }));
				outcomes[`dry run ${way} ${name}`] = await outcome(client.mutateAndValidate({ resource }));
			}
		}
		const refused = "PermissionDenied: alice lacks operator:read on music.v1.Artist";
		expect(outcomes).toEqual(
			Object.fromEntries(Object.keys(outcomes).map((call) => [call, refused])),
		);
		expect(Object.keys(outcomes)).toHaveLength(27);
	});

	it("does not prevent its deletion", async () => {
		const { server } = await startSecured();
		await outcome(clientAs(server, "alice").write({ resource: tour("t", "payroll") }));
		expect(await outcome(clientAs(server, "keeper").delete({ id: payrollId }))).toBe("ok");
	});

	it("can't be smuggled into a resource that is there already", async () => {
		const { server } = await startSecured();
		const client = clientAs(server, "alice");
		await client.write({ resource: tour("t") });
		for (const name of ["payroll", "nobody"]) {
			expect(await outcome(client.write({ resource: tour("t", name) }))).toBe(
				"PermissionDenied: alice lacks operator:read on music.v1.Artist",
			);
		}
	});
});

describe("a reference to another namespace", () => {
	it("requires operator:reference as well, even for a target that does not exist", async () => {
		const { server } = await startSecured();
		for (const name of ["payroll", "nobody"]) {
			for (const [user, lacks] of Object.entries({
				reader: "operator:reference",
				blind: "operator:read",
			})) {
				expect(await outcome(clientAs(server, user).write({ resource: tour("t", name) }))).toBe(
					`PermissionDenied: ${user} lacks ${lacks} on music.v1.Artist`,
				);
			}
		}
		const linker = clientAs(server, "linker");
		expect(await outcome(linker.write({ resource: tour("t", "payroll") }))).toBe("ok");
		expect(await outcome(linker.write({ resource: tour("u", "nobody") }))).toBe(
			"FailedPrecondition: artist references music.Artist default/secret/nobody, which does not exist",
		);
		const admin = clientAs(server, "admin");
		expect(await outcome(admin.write({ resource: tour("v", "payroll") }))).toBe("ok");
		const keeper = clientAs(server, "keeper");
		expect(await outcome(keeper.write({ resource: tour("w", "payroll", "secret") }))).toBe("ok");
	});

	it("is judged when it is new, not when the rest of the resource changes", async () => {
		const { server, file } = await startSecured();
		const linker = clientAs(server, "linker");
		await linker.write({ resource: tour("t", "payroll") });
		writeFileSync(file, rules + tokensOf({ ...users, linker: "in-a" }));
		await server.reload();
		const changed = { ...tour("t", "payroll"), metadata: { note: "changed" } };
		expect(await outcome(linker.write({ resource: changed }))).toBe("ok");
		expect(await outcome(linker.write({ resource: tour("t") }))).toBe("ok");
		expect(await outcome(linker.write({ resource: tour("t", "payroll") }))).toBe(
			"PermissionDenied: linker lacks operator:read on music.v1.Artist",
		);
	});
});

describe("the refusal of a deletion", () => {
	it("names what the caller may read, and counts the rest", async () => {
		const { server } = await startSecured();
		const admin = clientAs(server, "admin");
		for (const name of ["t1", "t2"]) {
			await admin.write({ resource: tour(name, "payroll") });
		}
		const refused = "FailedPrecondition: music.Artist default/secret/payroll can't be deleted:";
		const keeper = clientAs(server, "keeper");
		for (const dryRun of [true, false]) {
			expect(await outcome(keeper.delete({ id: payrollId, dryRun }))).toBe(
				`${refused} it is referenced by 2 resources of this deployment that you may not read`,
			);
		}
		await admin.write({ resource: tour("own", "payroll", "secret") });
		expect(await outcome(keeper.delete({ id: payrollId }))).toBe(
			`${refused} it is referenced by tours.Tour default/secret/own of this deployment and 2 more resources there that you may not read`,
		);
		const marking = {
			...resourceOf(Artist, { id: payrollId }),
			metadata: { [deletionTimestampKey]: "2026-01-01T00:00:00Z" },
		};
		expect(await outcome(keeper.write({ resource: marking }))).toContain(
			"2 more resources there that",
		);
		expect(await outcome(admin.delete({ id: payrollId }))).toMatch(
			/referenced by (tours\.Tour default\/(a|secret)\/(t1|t2|own)(, | of this deployment)){3}$/,
		);
	});
});
