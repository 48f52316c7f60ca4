import { Code, ConnectError } from "@connectrpc/connect";
import { nearest } from "@plinth/documents/suggest";
import {
	type SettleRequest_Action as Action,
	type ListDeploymentsResponse_Deployment as Deployment,
	DeploymentService,
	type ListDeploymentsResponse,
	type ListMissingResponse,
	type MissingReference,
	type SettleResponse_Result as Result,
} from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import { exitCodes } from "../exit-codes.ts";
import { Failure, usageFailure } from "../failure.ts";
import type { ServerSession } from "./server-session.ts";

/** The deployments that a server knows. @throws Failure, also for a server that can't tell. */
export function readDeployments(session: ServerSession): Promise<ListDeploymentsResponse> {
	const client = session.connection.client(DeploymentService);
	return session.call(unlessOlder(client.listDeployments({}, { signal: session.io.signal })));
}

/**
 * The deployment of a name, a uid, or SERVICE/REGION.
 *
 * @throws Failure if there is none, or more than one.
 */
export async function findDeployment(session: ServerSession, word: string): Promise<Deployment> {
	const { deployments } = await readDeployments(session);
	const named = deployments.filter((each) => wordsFor(each).includes(word));
	// What was restored may have the name of the deployment before, which stays registered, or another one.
	const uids = new Set(named.map(({ uid, successorUid }) => successorUid || uid));
	const found = deployments.filter(
		(each) => uids.has(each.uid) && (each.uid !== "" || named.includes(each)),
	);
	const [only, ...others] = found;
	if (only === undefined) {
		const near = nearest(word, deployments.flatMap(wordsFor));
		const hint = near === undefined ? "" : `; did you mean ${near}?`;
		throw new Failure(
			exitCodes.notFound,
			`the server knows no deployment ${word}${hint} (plinth deployments lists them)`,
		);
	}
	if (others.length > 0) {
		const choices = found.map(({ uid, name }) => `${uid} (${name})`).join(", ");
		throw usageFailure(`${word} is ambiguous: use a uid: ${choices}`);
	}
	if (!named.includes(only)) {
		session.io.err(`plinth: ${word} was replaced by ${displayDeployment(only)}\n`);
	}
	return only;
}

/** A word that names a deployment in commands. One without a name and a service has only a uid. */
export function wordFor({ name, uid, service, region }: Deployment): string {
	return name || (service === "" ? uid : `${service}/${region}`);
}

function wordsFor(deployment: Deployment): readonly string[] {
	const { name, uid } = deployment;
	return [name, uid, wordFor({ ...deployment, name: "" })].filter((word) => word !== "");
}

/** Names a deployment in messages: its name, and its place. */
export function displayDeployment({ name, uid, service, region }: Deployment): string {
	if (service === "") {
		return name || uid;
	}
	const place = region === "" ? service : `${service} in ${region}`;
	return name === "" ? place : `${name} (${place})`;
}

/** One page of the references without a target in a deployment, and how many there are. */
export function readMissing(
	session: ServerSession,
	deployment: Deployment,
	pageToken: string,
): Promise<ListMissingResponse> {
	const client = session.connection.client(DeploymentService);
	const request = { ...placeOf(deployment), pageToken };
	return session.call(unlessOlder(client.listMissing(request, { signal: session.io.signal })));
}

/** All references without a target in a deployment, of resources that the caller may read. */
export async function readAllMissing(
	session: ServerSession,
	deployment: Deployment,
	onProgress: (read: number, of: bigint) => void,
): Promise<{ readonly references: readonly MissingReference[]; readonly hidden: bigint }> {
	const references: MissingReference[] = [];
	let hidden = 0n;
	let pageToken = "";
	do {
		const page = await readMissing(session, deployment, pageToken);
		references.push(...page.references);
		hidden += page.hidden;
		onProgress(references.length, page.total);
		pageToken = page.nextPageToken;
	} while (pageToken !== "");
	return { references, hidden };
}

/** Settles some references without a target, or checks what that would do. */
export async function settleSome(
	session: ServerSession,
	deployment: Deployment,
	request: {
		readonly action: Action;
		readonly references: readonly MissingReference[];
		readonly dryRun: boolean;
	},
): Promise<readonly Result[]> {
	const client = session.connection.client(DeploymentService);
	const references = [...request.references];
	const response = await session.call(
		unlessOlder(
			client.settle(
				{ ...placeOf(deployment), ...request, references },
				{ signal: session.io.signal },
			),
		),
	);
	return response.results;
}

function placeOf({ uid, service, region }: Deployment) {
	return uid === "" ? { service, region } : { deploymentUid: uid };
}

async function unlessOlder<T>(response: Promise<T>): Promise<T> {
	try {
		return await response;
	} catch (error) {
		if (error instanceof ConnectError && error.code === Code.Unimplemented) {
			throw new Failure(
				exitCodes.failed,
				"the server is older than this command, which needs more of its DeploymentService: update all servers of the deployment",
			);
		}
		throw error;
	}
}
