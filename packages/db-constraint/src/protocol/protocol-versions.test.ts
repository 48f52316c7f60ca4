import { Code, ConnectError } from "@connectrpc/connect";
import type { Route } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { describe, expect, it } from "vitest";
import type { LabDeployment } from "../lab/lab.fixture.ts";
import { twoDeployments } from "../lab/things.fixture.ts";
import { routeTo } from "./holder-query.ts";
import { protocolHeader } from "./protocol-versions.ts";

const empty = { targets: [], blockades: [], questions: [], releases: [], ownerships: [] };

/** Calls every method, and returns what each has responded. */
async function callAll(
	{ lab, alpha, beta }: Awaited<ReturnType<typeof twoDeployments>>,
	versions: Partial<Pick<Route, "protocol" | "oldestProtocol">>,
) {
	const from: LabDeployment = beta;
	const to: LabDeployment = alpha;
	const route = { ...routeTo(from.current.constraints.context, to.info.uid), ...versions };
	const client = lab.client(from, to);
	const request = { route, ...empty };
	const call = async (run: () => Promise<unknown>) => {
		try {
			await lab.run(run());
			return "ok";
		} catch (failure) {
			const { code, rawMessage } = ConnectError.from(failure);
			return `${Code[code]}: ${rawMessage}`;
		}
	};
	const { establishReferences, authorizeReferences, confirmBlockades, checkReferences } = client;
	const { reportReleases, reportEstablished, checkMetaOwners, describeHolders } = client;
	const unary = [
		...[establishReferences, authorizeReferences, confirmBlockades, checkReferences],
		...[reportReleases, reportEstablished, checkMetaOwners, describeHolders],
	];
	const outcomes: string[] = [];
	for (const method of unary) {
		outcomes.push(await call(() => method(request)));
	}
	const end = new AbortController();
	const events = client.watchImportedServiceDeletions(request, { signal: end.signal });
	outcomes.push(await call(() => events[Symbol.asyncIterator]().next()));
	end.abort();
	return [...new Set(outcomes)];
}

describe("a deployment that speaks other versions of the protocol", () => {
	it.for([
		{ of: "the release before", versions: { protocol: 0, oldestProtocol: 0 } },
		{ of: "this release", versions: {} },
		{ of: "the next release", versions: { protocol: 3, oldestProtocol: 2 } },
	])("is understood if it is of $of", async ({ versions }) => {
		expect(await callAll(await twoDeployments(), versions)).toEqual(["ok"]);
	});

	it("is refused by name by every method if they have none in common", async () => {
		expect(await callAll(await twoDeployments(), { protocol: 4, oldestProtocol: 3 })).toEqual([
			"Unavailable: alpha in r1 speaks the versions 1-2 of the protocol between deployments, and beta in r1 the versions 3-4: update alpha in r1",
		]);
	});

	it("learns the versions from each response", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		const route = routeTo(beta.current.constraints.context, alpha.info.uid);
		let header: string | null = "";
		const onHeader = (headers: Headers) => {
			header = headers.get(protocolHeader);
		};
		await lab.run(lab.client(beta, alpha).reportEstablished({ route }, { onHeader }));
		expect(header).toBe("1-2");
	});
});
