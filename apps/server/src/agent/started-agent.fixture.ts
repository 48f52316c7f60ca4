import { silentLogger } from "@plinth/runtime";
import { expect, onTestFinished } from "vitest";
import { http2OfTests } from "../http2.fixture.ts";
import { type Agent, type AgentContext, startAgent } from "./agent.ts";
import type { AgentConfiguration } from "./agent-configuration.ts";

/** An agent on a free port, which is stopped when the test is over. It may not have a ready server yet. */
export async function startTestAgent(
	servers: readonly string[],
	configuration: Partial<AgentConfiguration> = {},
	context: Partial<AgentContext> = {},
): Promise<Agent> {
	const agent = await startAgent(
		{
			listen: { host: "127.0.0.1", port: 0 },
			servers,
			stopLimitMs: 1_000,
			...http2OfTests(),
			...configuration,
		},
		{ logger: silentLogger, ...context },
	);
	onTestFinished(() => agent.stop());
	return agent;
}

/** Resolves when `/readyz` of an agent matches. */
export async function readiness(address: string, pattern: RegExp): Promise<void> {
	await expect
		.poll(async () => (await fetch(`${address}/readyz`)).text(), { interval: 10 })
		.toMatch(pattern);
}

/** Such an agent, once all of its servers are ready. */
export async function startReadyAgent(
	servers: readonly string[],
	configuration: Partial<AgentConfiguration> = {},
): Promise<Agent> {
	const agent = await startTestAgent(servers, configuration);
	for (const server of servers) {
		await readiness(agent.address, new RegExp(`${server}: ready`));
	}
	return agent;
}
