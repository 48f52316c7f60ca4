import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { HistoryService, type IDSchema, ResourceService } from "@plinth/proto";
import { Change } from "@plinth/proto/gen/plinth/history/v1/history_service_pb.js";
import {
	allowed,
	defineType,
	idOf,
	Namespace,
	Partition,
	type ResourceType,
	resourceOf,
	Tombstone,
	TypeRegistry,
	typeOf,
} from "@plinth/resource";
import { systemRandom, systemScheduler } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { createMemoryBackend, type StorageLimits } from "@plinth/storage";
import { describe, expect, it, onTestFinished } from "vitest";
import { ArtistSchema as ArtistV1Schema } from "../../testdata/gen/acme/demo/v1/demo_pb.ts";
import { SecretSchema } from "../../testdata/gen/acme/demo/v2/demo_pb.ts";
import { deploymentAuthorizer } from "../access/open-access.ts";
import { PolicyAuthorizer } from "../access/policy-authorizer.ts";
import { Artist, ArtistV1, artist, demoTypes, Secret } from "../demo.fixture.ts";
import { createResourceService } from "../resource-service.ts";
import { expectRefusal } from "../service.fixture.ts";
import { ensureDefaultTenancy } from "../tenancy/tenancy-defaults.ts";
import { createHistoryService } from "./history-service.ts";

const startMs = Date.UTC(2030, 0, 1);

/** Both services over an empty storage, for the callers `ann` and `bob`, who may do everything, `fan` and `eve`. */
async function start({
	limits = {},
	types = demoTypes,
}: {
	limits?: Partial<StorageLimits>;
	types?: readonly ResourceType[];
} = {}) {
	const clock = new FakeClock({ nowMs: startMs });
	const runtime = { clock, random: systemRandom, scheduler: systemScheduler };
	const registry = new TypeRegistry([Partition, Namespace, Tombstone, ...types]);
	const backend = createMemoryBackend({ runtime, limits });
	onTestFinished(() => backend.close());
	await ensureDefaultTenancy(backend, runtime);
	const authorizer = new PolicyAuthorizer();
	for (const subject of ["ann", "bob"]) {
		authorizer.grant(subject, { subject, rules: [{ operations: ["*"], type: "*" }] });
	}
	const rules = [{ operations: ["operator:read"], type: "demo.v2.*" }];
	authorizer.grant("fan", { subject: "fan", rules });
	authorizer.grant("eve", { subject: "eve", rules: [] });
	const common = { backend, registry, runtime };
	const transport = createInProcessTransport((router) => {
		router.service(ResourceService, createResourceService({ ...common, authorizer }));
		const histories = backend;
		router.service(HistoryService, createHistoryService({ ...common, histories, authorizer }));
	});
	const trusted = createInProcessTransport((router) => {
		const ofDeployment = { ...common, authorizer: deploymentAuthorizer };
		router.service(ResourceService, createResourceService(ofDeployment));
	});
	return {
		clock,
		backend,
		resources: createInProcessClient(ResourceService, transport),
		trusted: createInProcessClient(ResourceService, trusted),
		histories: createInProcessClient(HistoryService, transport),
	};
}

const as = (token: string, headers: Record<string, string> = {}) => ({
	headers: { authorization: `Bearer ${token}`, ...headers },
});
const miles = { id: idOf(Artist, "miles") };

const nameOfChange = (change: Change) =>
	Object.entries(Change).find(([, number]) => number === change)?.[0];

describe("ListVersions", () => {
	it("returns the versions, the newest first, with their time and who has written them", async () => {
		const { clock, resources, trusted, histories } = await start();
		const named = { headers: { "x-plinth-controller": "agent" } };
		const { resource: first } = await resources.write({ resource: artist("miles") }, as("ann"));
		clock.advance(1_000);
		// Only parts of the deployment can name a controller.
		await resources.write(
			{ resource: artist("miles", {}, "bop") },
			as("bob", { "x-plinth-controller": "agent" }),
		);
		clock.advance(1_000);
		const { resource: reported } = await trusted.writeStatus(
			{
				id: { ...miles.id, uid: first?.id?.uid ?? "" },
				key: "agent",
				status: { observedGeneration: first?.generation ?? "" },
			},
			named,
		);
		await resources.delete(miles, as("ann"));
		await trusted.write({ resource: artist("miles") });
		const response = await histories.listVersions(miles, as("ann"));
		expect(response.versions).toMatchObject([
			{ change: Change.CREATED, writtenBy: "deployment" },
			{ change: Change.DELETED, writtenBy: "ann", resource: reported },
			{ change: Change.UPDATED, writtenBy: "agent", resource: reported },
			{ change: Change.UPDATED, writtenBy: "bob" },
			{ change: Change.CREATED, writtenBy: "ann", resource: first },
		]);
		const [, , status, update, creation] = response.versions;
		expect(creation?.writtenAt?.seconds).toBe(BigInt(startMs / 1_000));
		expect(update?.writtenAt?.seconds).toBe(BigInt(startMs / 1_000 + 1));
		expect(status?.version).toBe(reported?.version);
		expect(response).toMatchObject({ hasMore: false, includesCreation: true });
		expect(response.completeSince?.seconds).toBe(BigInt(startMs / 1_000));
		// One incarnation.
		const ofFirst = { id: { ...miles.id, uid: first?.id?.uid ?? "" } };
		const { versions } = await histories.listVersions(ofFirst, as("ann"));
		expect(versions.map(({ change }) => change)).toEqual([
			...[Change.DELETED, Change.UPDATED, Change.UPDATED, Change.CREATED],
		]);
	});

	it("returns as many as the limit says, and whether there are more", async () => {
		const { resources, histories } = await start();
		for (let count = 0; count < 25; count++) {
			await resources.write({ resource: artist("miles", {}, `genre ${count}`) }, as("ann"));
		}
		const byDefault = await histories.listVersions(miles, as("ann"));
		expect(byDefault.versions).toHaveLength(20);
		expect(byDefault).toMatchObject({ hasMore: true, includesCreation: false });
		const all = await histories.listVersions({ ...miles, limit: 1_000 }, as("ann"));
		expect(all.versions).toHaveLength(25);
		expect(all).toMatchObject({ hasMore: false, includesCreation: true });
		const one = await histories.listVersions({ ...miles, limit: 1 }, as("ann"));
		expect(one.versions).toEqual(all.versions.slice(0, 1));
		const beforeVersion = byDefault.versions.at(-1)?.version ?? "";
		const rest = await histories.listVersions({ ...miles, beforeVersion }, as("ann"));
		expect([...byDefault.versions, ...rest.versions]).toEqual(all.versions);
		expect(rest).toMatchObject({ hasMore: false, includesCreation: true });
		const oldest = all.versions.at(-1)?.version ?? "";
		const none = await histories.listVersions({ ...miles, beforeVersion: oldest }, as("ann"));
		expect(none).toMatchObject({ versions: [], hasMore: false });
		await expectRefusal(
			histories.listVersions({ ...miles, beforeVersion: "x".repeat(5_000) }, as("ann")),
			Code.OutOfRange,
			/^version x{100} is not known any more: list the versions without before_version$/,
		);
	});

	it("says since when it is complete, and what was stored before", async () => {
		const { clock, resources, histories } = await start({ limits: { logEvents: 2 } });
		for (const genre of ["a", "b", "c", "d"]) {
			clock.advance(1_000);
			await resources.write({ resource: artist("miles", {}, genre) }, as("ann"));
		}
		const { versions, ...rest } = await histories.listVersions(miles, as("ann"));
		expect(versions.map(({ change }) => change)).toEqual([
			...[Change.UPDATED, Change.UPDATED, Change.UNSPECIFIED],
		]);
		const last = versions.at(-1);
		expect(last).toMatchObject({ writtenBy: "" });
		// The time that its generation tells.
		expect(last?.writtenAt?.seconds).toBe(BigInt(startMs / 1_000 + 2));
		expect(rest.includesCreation).toBe(false);
		expect(rest.completeSinceVersion).toBe(last?.version);
		expect(rest.completeSince).toEqual(last?.writtenAt);
	});

	it("fails as a read does: for those without rights, unknown types, and what is not there", async () => {
		const { resources, histories } = await start();
		await resources.write({ resource: artist("miles") }, as("ann"));
		const both = async (request: { id?: MessageInitShape<typeof IDSchema> }, token = "ann") => {
			const outcome = async (call: Promise<unknown>) =>
				call.then(
					() => "allowed",
					({ code, rawMessage }) => ({ code, rawMessage }),
				);
			const read = await outcome(resources.read(request, as(token)));
			expect(await outcome(histories.listVersions(request, as(token)))).toEqual(read);
			return read;
		};
		expect(await both(miles, "eve")).toMatchObject({ code: Code.PermissionDenied });
		expect(await both({ id: idOf(Artist, "nobody") }, "eve")).toMatchObject({
			code: Code.PermissionDenied,
		});
		expect(await both(miles, "mallory")).toMatchObject({ code: Code.Unauthenticated });
		expect(await both({ id: idOf(Artist, "nobody") })).toMatchObject({ code: Code.NotFound });
		const elsewhere = { id: idOf(Artist, "miles", { namespace: "nowhere" }) };
		expect(await both(elsewhere)).toMatchObject({ code: Code.NotFound });
		expect(await both({ id: { ...miles.id, uid: "another" } })).toMatchObject({
			code: Code.NotFound,
		});
		expect(await both({ id: idOf(ArtistV1, "miles") })).toMatchObject({
			code: Code.InvalidArgument,
		});
		const unknown = typeOf({ group: "demo", groupVersion: "v9", kind: "Nope" });
		for (const id of [
			undefined,
			{},
			{ ...miles.id, name: "" },
			{ ...miles.id, name: "x".repeat(10_000) },
			{ ...miles.id, name: "__proto__" },
			{ ...miles.id, type: unknown },
			{ ...miles.id, tenancy: { partition: "*", namespace: "*" } },
		]) {
			expect(await both(id === undefined ? {} : { id })).toMatchObject({
				code: Code.InvalidArgument,
			});
		}
		await expectRefusal(
			histories.listVersions({ ...miles, limit: 4_294_967_295 }, as("ann")),
			Code.InvalidArgument,
			"limit invalid: must be at most 1,000, got: 4294967295",
		);
	});

	it("shows each version only to those who may read it, and hints at no other", async () => {
		const { resources, histories } = await start();
		const id = idOf(Secret, "launch-code");
		const put = (token: string, reader: string) =>
			resources.write(
				{ resource: resourceOf(Secret, { id, data: create(SecretSchema, { reader }) }) },
				as(token),
			);
		const readersOf = async (token: string) => {
			const { versions } = await histories.listVersions({ id }, as(token));
			return versions.map(({ change }) => nameOfChange(change));
		};
		await put("ann", "ann");
		const { resource: hidden } = await put("ann", "ann");
		expect(await readersOf("ann")).toEqual(["UPDATED", "CREATED"]);
		const denied = "bob is not ann";
		await expectRefusal(resources.read({ id }, as("bob")), Code.PermissionDenied, denied);
		await expectRefusal(readersOf("bob"), Code.PermissionDenied, denied);
		await resources.delete({ id }, as("ann"));
		// As a read of what does not exist: nothing says that it did.
		await expectRefusal(resources.read({ id }, as("bob")), Code.NotFound, "resource not found");
		await expectRefusal(readersOf("bob"), Code.NotFound, "resource not found");
		expect(await readersOf("ann")).toEqual(["DELETED", "UPDATED", "CREATED"]);
		await put("bob", "bob");
		expect(await readersOf("bob")).toEqual(["CREATED"]);
		// A version that the caller may not read is as unknown as one that never was.
		for (const beforeVersion of [hidden?.version ?? "", "4711"]) {
			await expectRefusal(
				histories.listVersions({ id, beforeVersion }, as("bob")),
				Code.OutOfRange,
				`version ${beforeVersion} is not known any more: list the versions without before_version`,
			);
		}
		await expectRefusal(readersOf("ann"), Code.PermissionDenied, "ann is not bob");
	});

	it("looks at no more versions than it returns, and one", async () => {
		let asked = 0;
		const read: NonNullable<NonNullable<ResourceType["hooks"]["authorize"]>["read"]> = () => {
			asked += 1;
			return allowed;
		};
		const Counted = defineType(SecretSchema, { authorize: { read } });
		const { resources, histories } = await start({ types: [Counted] });
		const id = idOf(Counted, "launch-code");
		const resource = resourceOf(Counted, { id, data: create(SecretSchema) });
		for (let count = 0; count < 50; count++) {
			await resources.write({ resource }, as("ann"));
		}
		asked = 0;
		const { versions, hasMore } = await histories.listVersions({ id, limit: 3 }, as("ann"));
		expect([versions.length, hasMore]).toEqual([3, true]);
		// The call itself, and the versions.
		expect(asked).toBe(1 + 3 + 1);
	});

	it("requires the rights of its own group version for each version", async () => {
		const { resources, histories } = await start();
		const former = { ...artist("miles"), id: idOf(ArtistV1, "miles") };
		const data = anyPack(ArtistV1Schema, create(ArtistV1Schema));
		await resources.write({ resource: { ...former, data } }, as("ann"));
		await resources.write({ resource: artist("miles") }, as("ann"));
		const versionsOf = async (token: string) => {
			const { versions } = await histories.listVersions(miles, as(token));
			return versions.map(({ resource }) => resource?.id?.type?.groupVersion);
		};
		expect(await versionsOf("ann")).toEqual(["v2", "v1"]);
		expect(await versionsOf("fan")).toEqual(["v2"]);
	});

	it("returns less than the limit if it would be too large", async () => {
		const { resources, histories } = await start();
		const genre = "x".repeat(1_000_000);
		for (let count = 0; count < 20; count++) {
			await resources.write({ resource: artist("miles", {}, genre) }, as("ann"));
		}
		const { versions, hasMore } = await histories.listVersions(miles, as("ann"));
		expect(hasMore).toBe(true);
		expect(versions.length).toBeGreaterThan(10);
		expect(versions.length).toBeLessThan(18);
		const beforeVersion = versions.at(-1)?.version ?? "";
		const rest = await histories.listVersions({ ...miles, beforeVersion }, as("ann"));
		expect(versions.length + rest.versions.length).toBe(20);
	});

	it("serves two callers at once while the resource changes", async () => {
		const { resources, histories } = await start();
		await resources.write({ resource: artist("miles", {}, "0") }, as("ann"));
		const writes = async (token: string) => {
			for (let count = 1; count < 20; count++) {
				await resources.write({ resource: artist("miles", {}, `${token} ${count}`) }, as(token));
			}
		};
		const reads = async (token: string) => {
			for (let count = 0; count < 20; count++) {
				const { versions } = await histories.listVersions({ ...miles, limit: 1_000 }, as(token));
				expect(versions.at(-1)?.change).toBe(Change.CREATED);
				const numbers = versions.map(({ version }) => Number(version));
				expect(numbers).toEqual(numbers.toSorted((a, b) => b - a));
				for (const { resource, version } of versions) {
					expect(resource?.version).toBe(version);
				}
			}
		};
		await Promise.all([writes("ann"), writes("bob"), reads("ann"), reads("bob")]);
		const { versions } = await histories.listVersions({ ...miles, limit: 1_000 }, as("ann"));
		expect(versions).toHaveLength(39);
	});
});
