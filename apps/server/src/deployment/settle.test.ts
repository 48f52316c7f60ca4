import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import {
	SettleRequest_Action as Action,
	DeploymentService,
	SettleResponse_Outcome as Outcome,
} from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import { idOf, Namespace, referenceTo, resourceOf } from "@plinth/resource";
import { backupFile, restoreFile } from "@plinth/storage-sqlite";
import { temporaryFolder } from "@plinth/test-support";
import { expect, it, vi } from "vitest";
import { TourSchema } from "../../testdata/gen/tours/v1/tours_pb.ts";
import { Artist, artist, musicModule, Tour, toursModule } from "../../testdata/music.ts";
import { outcome, tokensOf, transportWith } from "../callers.fixture.ts";
import { filesOf } from "../certificates.fixture.ts";
import { databaseFile } from "../storage/open-storage.ts";
import { credentialFile, startDeployment } from "./started-deployment.fixture.ts";

const policies = `
policies:
  everything: [{ operations: ["*"] }]
  in-a: [{ operations: [operator:read, operator:write], namespace: a }]
  reports: [{ operations: [operator:read], type: internal.v1.Deployment }]
  settles: [{ operations: [operator:settle], type: internal.v1.Deployment }]
  reads-a: [{ operations: [operator:read], type: tours.v1.Tour, namespace: a }]
`;

const users = {
	...{ admin: "everything", alice: "in-a", viewer: "reports, reads-a" },
	...{ operator: "reports, settles, reads-a", half: "settles, reads-a" },
};

/** Tours in two namespaces that reference an artist, which was lost when its deployment was restored from a backup. */
async function startRestored() {
	const file = credentialFile();
	const folder = await temporaryFolder();
	const path = join(folder, databaseFile);
	const meta = await startDeployment("meta", file);
	const metaAddresses = [meta.internal];
	const startMusic = () =>
		startDeployment("music", file, {
			metaAddresses,
			modules: [musicModule()],
			storage: { kind: "sqlite", directory: folder },
		});
	const early = await startMusic();
	await early.server.stop();
	const backup = join(await temporaryFolder(), "backup.sqlite");
	await backupFile({ path, to: backup });
	const music = await startMusic();
	const { server: tours } = await startDeployment("tours", file, {
		metaAddresses,
		modules: [toursModule()],
		access: { file: filesOf({ access: policies + tokensOf(users) }).access },
	});
	await music.server.client.write({ resource: artist("miles") });
	const to = { ...referenceTo({ type: Artist.type, name: "miles" }), region: "r1" };
	const data = create(TourSchema, {
		artist: { ...to, tenancy: { $typeName: "plinth.resource.v1.Tenancy", ...place } },
	});
	for (const namespace of ["a", "b"]) {
		await tours.client.write({
			resource: resourceOf(Namespace, { id: idOf(Namespace, namespace) }),
		});
		await tours.client.write({
			resource: resourceOf(Tour, { id: idOf(Tour, "t", { namespace }), data }),
		});
	}
	await music.server.stop();
	await restoreFile({ path, from: backup });
	const restored = await startMusic();
	const as = (user: keyof typeof users) =>
		createClient(DeploymentService, transportWith(tours.address, `${user}-token`));
	const reported = () =>
		vi.waitFor(
			async () => {
				const { deployments } = await as("admin").listDeployments({});
				const found = deployments.find(({ missing }) => missing === 2n);
				if (found === undefined) {
					throw new Error("nothing is reported as missing yet");
				}
				return found;
			},
			{ timeout: 300_000, interval: 100 },
		);
	return { tours, restored, as, deploymentUid: (await reported()).uid };
}

const place = { partition: "default", namespace: "default" };

it("references to what a restore has lost are reported, held, and settled by those who may", async () => {
	const { tours, as, deploymentUid } = await startRestored();
	const read = async (namespace: string) =>
		(await tours.client.read({ id: idOf(Tour, "t", { namespace }) })).resource;
	expect((await read("a"))?.status.references?.conditions).toMatchObject([
		{
			type: "ReferencesResolved",
			message: expect.stringMatching(
				/^missing: artist: music.Artist default\/default\/miles \(r1\); .* plinth deployments settle music-r1/,
			),
		},
	]);

	const all = await as("admin").listMissing({ deploymentUid });
	expect(all.references.map(({ holder }) => holder?.namespace).toSorted()).toEqual(["a", "b"]);
	const { references, hidden, total } = await as("operator").listMissing({ deploymentUid });
	expect(references).toMatchObject([{ holder: { namespace: "a" }, path: "artist" }]);
	expect({ hidden, total }).toEqual({ hidden: 1n, total: 2n });

	const request = { deploymentUid, action: Action.UNSET, references: all.references };
	expect(await outcome(as("viewer").settle(request))).toBe(
		"PermissionDenied: viewer lacks operator:settle on internal.v1.Deployment",
	);
	for (const user of ["alice", "half"] as const) {
		const denied = `PermissionDenied: ${user} lacks operator:read on internal.v1.Deployment`;
		expect(await outcome(as(user).settle(request))).toBe(denied);
		expect(await outcome(as(user).settle({ deploymentUid: "nobody" }))).toBe(denied);
		expect(await outcome(as(user).listMissing({ deploymentUid }))).toBe(denied);
	}

	const outcomes = async (user: keyof typeof users) =>
		(await as(user).settle(request)).results.map(({ outcome: each }) => each);
	const isIn = (namespace: string) =>
		all.references.map(({ holder }) =>
			holder?.namespace === namespace ? Outcome.SETTLED : Outcome.GONE,
		);
	expect(await outcomes("operator")).toEqual(isIn("a"));
	expect(await read("a")).toMatchObject({ data: { value: new Uint8Array() } });
	expect((await read("b"))?.data?.value.length).toBeGreaterThan(0);
	expect(await outcomes("admin")).toEqual(isIn("b"));
	const { deployments } = await as("admin").listDeployments({});
	expect(deployments.every(({ missing }) => missing === 0n)).toBe(true);
});

it("references to what a restore has lost are resolved when it is created again, and not settled any longer", async () => {
	const { tours, restored, as, deploymentUid } = await startRestored();
	const { references } = await as("admin").listMissing({ deploymentUid });
	await restored.server.client.write({ resource: artist("miles") });
	const { results } = await as("admin").settle({
		...{ deploymentUid, action: Action.CASCADE, references },
	});
	expect(results.map(({ outcome: each }) => each)).toEqual([Outcome.GONE, Outcome.GONE]);
	const id = idOf(Tour, "t", { namespace: "a" });
	const { resource } = await tours.client.read({ id });
	expect(resource?.status.references?.conditions).toMatchObject([
		{ type: "ReferencesResolved", message: "" },
	]);
	const { deployments } = await as("admin").listDeployments({});
	expect(deployments.every(({ missing }) => missing === 0n)).toBe(true);
});
