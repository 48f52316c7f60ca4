import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { Deployment } from "@plinth/db-constraint";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { DeploymentService } from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import {
	PlanDeletionResponse_Outcome,
	ReferenceService,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { idOf, Namespace, newUlid, referenceTo, resourceOf } from "@plinth/resource";
import { type Logger, type LogMethod, systemRuntime } from "@plinth/runtime";
import { describe, expect, it, vi } from "vitest";
import { TourSchema } from "../../testdata/gen/tours/v1/tours_pb.ts";
import { Artist, musicModule, Tour, toursModule } from "../../testdata/music.ts";
import {
	clientAs,
	outcome,
	ownedBySecret,
	secret,
	tokensOf,
	transportWith,
} from "../callers.fixture.ts";
import { filesOf } from "../certificates.fixture.ts";
import { credential, credentialFile, startDeployment } from "./started-deployment.fixture.ts";

const policies = `
policies:
  everything: [{ operations: ["*"] }]
  in-a: [{ operations: [operator:read, operator:write], namespace: a }]
  in-secret: [{ operations: [operator:read, operator:write], namespace: secret }]
  links: [{ operations: [operator:read, operator:reference], namespace: secret }]
`;

function accessFile(users: Record<string, string>): string {
	return filesOf({ access: policies + tokensOf(users) }).access;
}

/** Artists are kept by one deployment, tours by another; each has an access file of its own. */
async function startBoth() {
	const file = credentialFile();
	const lines: string[] = [];
	const logger = capturing(lines);
	const meta = await startDeployment("meta", file);
	const metaAddresses = [meta.internal];
	const music = await startDeployment("music", file, {
		metaAddresses,
		logger,
		modules: [musicModule()],
		access: {
			file: accessFile({
				admin: "everything",
				alice: "in-a",
				keeper: "in-secret",
				linker: "links",
			}),
		},
	});
	const tours = await startDeployment("tours", file, {
		metaAddresses,
		logger,
		modules: [toursModule()],
		access: {
			file: accessFile({
				admin: "everything",
				alice: "in-a",
				linker: "in-a",
				stranger: "everything",
			}),
		},
	});
	for (const { server } of [music, tours]) {
		for (const name of ["a", "secret"]) {
			await server.client.write({ resource: resourceOf(Namespace, { id: idOf(Namespace, name) }) });
		}
	}
	const { resource } = await music.server.client.write({
		resource: resourceOf(Artist, { id: secret("payroll") }),
	});
	const { resource: known } = await meta.server.client.read({ id: idOf(Deployment, "music-r1") });
	return {
		...{ music, tours, lines },
		payrollUid: resource?.id?.uid ?? "",
		musicUid: known?.id?.uid ?? "",
	};
}

function capturing(lines: string[]): Logger {
	const log: LogMethod = (fields, message) => {
		lines.push(message, JSON.stringify(fields), String(fields.err ?? ""));
	};
	return { debug: log, info: log, warn: log, error: log };
}

function tour(name: string, artist: string) {
	const data = create(TourSchema, { artist: referenceTo(secret(artist)) });
	return resourceOf(Tour, { id: idOf(Tour, name, { namespace: "a" }), data });
}

function ownedBy(name: string, uid: string) {
	return {
		...resourceOf(Tour, { id: idOf(Tour, "owned", { namespace: "a" }) }),
		ownerReferences: [ownedBySecret(name, uid)],
	};
}

describe("a reference to a resource of another deployment", () => {
	it("is decided on there, by the caller's token, whether or not there is a target", async () => {
		const { music, tours, payrollUid, lines } = await startBoth();
		const outcomes = async (user: string) => {
			const client = clientAs(tours.server, user);
			const all: Record<string, string> = {};
			for (const [name, uid] of Object.entries({
				payroll: payrollUid,
				nobody: newUlid(systemRuntime),
			})) {
				for (const [way, resource] of Object.entries({
					field: tour("t", name),
					owner: ownedBy(name, uid),
				})) {
					all[`dry run ${way} ${name}`] = await outcome(client.mutateAndValidate({ resource }));
					all[`write ${way} ${name}`] = await outcome(client.write({ resource }));
				}
			}
			return all;
		};
		const each = (outcome: string, all: Record<string, string>) =>
			Object.fromEntries(Object.keys(all).map((call) => [call, outcome]));
		const ofAlice = await outcomes("alice");
		expect(ofAlice).toEqual(
			each("PermissionDenied: alice lacks operator:read on music.v1.Artist", ofAlice),
		);
		const ofStranger = await outcomes("stranger");
		expect(ofStranger).toEqual(
			each(
				"PermissionDenied: deployment music-r1 does not accept the caller: the token is not known",
				ofStranger,
			),
		);
		expect(Object.keys(ofAlice)).toHaveLength(8);
		expect(await outcome(clientAs(music.server, "keeper").delete({ id: secret("payroll") }))).toBe(
			"ok",
		);
		expect(lines.length).toBeGreaterThan(0);
		expect(lines.join("\n")).not.toMatch(/(alice|stranger)-token/);
	});

	it("is taken from those who may, and from the other deployment itself", async () => {
		const { tours } = await startBoth();
		const linker = clientAs(tours.server, "linker");
		expect(await outcome(linker.mutateAndValidate({ resource: tour("t", "payroll") }))).toBe("ok");
		expect(await outcome(linker.write({ resource: tour("t", "payroll") }))).toBe("ok");
		expect(await outcome(linker.write({ resource: tour("u", "nobody") }))).toMatch(
			/^FailedPrecondition: .* music\.Artist default\/secret\/nobody \(r1\) does not exist$/,
		);
		expect(await outcome(tours.server.client.write({ resource: tour("v", "payroll") }))).toBe("ok");
	});

	it("is named in refusals to callers who may read its source, and counted for others", async () => {
		const { music, tours } = await startBoth();
		await clientAs(tours.server, "linker").write({ resource: tour("t", "payroll") });
		const refused =
			"FailedPrecondition: music.Artist default/secret/payroll (r1) can't be deleted: it is referenced by";
		const deletion = (user: string, dryRun: boolean) =>
			outcome(clientAs(music.server, user).delete({ id: secret("payroll"), dryRun }));
		await vi.waitFor(
			async () => {
				for (const dryRun of [true, false]) {
					expect(await deletion("keeper", dryRun)).toBe(
						`${refused} 1 resource of tours in r1 that you may not read`,
					);
					expect(await deletion("admin", dryRun)).toBe(
						`${refused} tours.Tour default/a/t (r1) of tours in r1`,
					);
				}
			},
			{ timeout: 300_000 },
		);
	});

	it("is counted for operators, who see which deployments there are", async () => {
		const { music, tours } = await startBoth();
		await clientAs(tours.server, "linker").write({ resource: tour("t", "payroll") });
		const as = (user: string) =>
			createClient(DeploymentService, transportWith(tours.server.address, `${user}-token`));
		const { deployments, outdatedSince } = await as("admin").listDeployments({});
		expect(outdatedSince).toBeUndefined();
		expect(deployments).toMatchObject([
			{ service: "meta", region: "r1", isRegistered: true },
			{ service: "music", region: "r1", isSelf: false, isRegistered: true, references: 1n },
			{ service: "tours", region: "r1", isSelf: true, isRegistered: true, references: 0n },
		]);
		expect(await outcome(as("linker").listDeployments({}))).toMatch(/^PermissionDenied: /);
		await music.server.stop();
		expect((await as("admin").listDeployments({})).deployments).toHaveLength(3);
	});

	it("is told to callers who may read its source, and counted for others, before a deletion", async () => {
		const { music, tours } = await startBoth();
		await clientAs(tours.server, "linker").write({ resource: tour("t", "payroll") });
		const as = (user: string) =>
			createClient(ReferenceService, transportWith(music.server.address, `${user}-token`));
		const request = { id: secret("payroll") };
		const source = { kind: "Tour", namespace: "a", name: "t", region: "r1" };
		const { incoming } = await as("admin").listReferences(request);
		expect(incoming).toMatchObject([
			{ resource: source, paths: ["artist"], rules: [OnDelete.BLOCK] },
		]);
		expect(await as("keeper").listReferences(request)).toMatchObject({ incoming: [], hidden: 1 });
		const { effects, hidden, ...plan } = await as("admin").planDeletion(request);
		expect(plan).toMatchObject({ outcome: PlanDeletionResponse_Outcome.REFUSED, isPartial: false });
		expect(effects).toMatchObject([
			{ resource: { name: "payroll" }, waitsFor: [source] },
			{ resource: source },
		]);
		expect(hidden).toBe(0);
		const counted = await as("keeper").planDeletion(request);
		expect(counted).toMatchObject({
			outcome: PlanDeletionResponse_Outcome.REFUSED,
			effects: [{ resource: { name: "payroll" }, waitsFor: [], hidden: 1 }],
			counts: { blocked: 1, blocking: 1 },
			hidden: 1,
		});
		expect(await outcome(as("alice").planDeletion(request))).toMatch(/^PermissionDenied: /);
		expect(await outcome(as("stranger").listReferences(request))).toMatch(/^Unauthenticated: /);
		await tours.server.stop();
		const unknown = await as("admin").planDeletion(request);
		expect(unknown.effects[0]?.unknown).toMatchObject([
			expect.stringMatching(/^tours in r1 \(not reached: /),
		]);
		expect(unknown.outcome).toBe(PlanDeletionResponse_Outcome.REFUSED);
	});

	it("is refused if an old server does not name its caller", async () => {
		const { music, musicUid } = await startBoth();
		const mixin = createClient(SchemaMixinService, transportWith(music.internal, credential));
		const tenancy = { partition: "default", namespace: "secret" };
		const key = { group: "music", kind: "Artist", name: "payroll", region: "r1", ...tenancy };
		const route = { from: { uid: "old", service: "tours", region: "r1" }, toUid: musicUid };
		const targets = [{ key, rules: [OnDelete.BLOCK] }];
		expect(await outcome(mixin.establishReferences({ route, targets }))).toBe(
			"Unavailable: tours in r1 runs a version that does not name the caller of a reference: update it",
		);
	});
});
