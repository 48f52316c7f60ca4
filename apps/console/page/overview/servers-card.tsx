import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ServerOverview } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { bytes, count, rate, shortDuration } from "../model/format.ts";
import { Badge } from "../parts/badge.tsx";
import { Card } from "../parts/card.tsx";
import { NumberHeadings } from "../parts/number-headings.tsx";

const figures = ["CPU", "Delay", "Memory", "Heap", "Commits/s", "Watches", "Leases"] as const;

/** The servers of the cluster, with those whose report is missing. */
export function ServersCard({ servers }: { readonly servers: readonly ServerOverview[] }) {
	return (
		<Card title="Servers" wide>
			<div className="scroll-x">
				<table>
					<thead>
						<tr>
							<th scope="col">Server</th>
							<th scope="col">Version</th>
							<th scope="col">Up</th>
							<NumberHeadings of={figures} />
						</tr>
					</thead>
					<tbody>
						{servers.map((each) => (
							<ServerRow key={each.server?.name} overview={each} />
						))}
					</tbody>
				</table>
			</div>
		</Card>
	);
}

function ServerRow({
	overview: { server, process, storage },
}: {
	readonly overview: ServerOverview;
}) {
	if (process === undefined) {
		return (
			<tr>
				<td>{server?.name}</td>
				<td colSpan={2 + figures.length}>
					<Badge tone="bad">no report</Badge> {server?.missing}
				</td>
			</tr>
		);
	}
	const { uptime, cpu, eventLoopDelay, residentBytes, heapUsedBytes, heapLimitBytes } = process;
	const heap = Number(heapUsedBytes) / Math.max(1, Number(heapLimitBytes));
	return (
		<tr>
			<td>
				{server?.name}
				{server?.holdsLease === true && (
					<span title="It holds the lease: singleton controllers run on it.">
						{" "}
						<Badge tone="good">holds the lease</Badge>
					</span>
				)}
			</td>
			<td className="muted">{server?.version}</td>
			<td>{uptime && shortDuration(durationMs(uptime))}</td>
			<td className="number">{Math.round(cpu * 100)}%</td>
			<td className="number">
				{eventLoopDelay === undefined ? "–" : `${Math.round(durationMs(eventLoopDelay))} ms`}
			</td>
			<td className="number">{bytes(residentBytes)}</td>
			<td className={heap >= 0.9 ? "number bad-text" : "number"}>{Math.round(heap * 100)}%</td>
			<td className="number">{rate(storage?.commitsPerSecond ?? 0)}</td>
			<td className="number">{count(storage?.watches ?? 0n)}</td>
			<td className="number">{count(storage?.leases ?? 0)}</td>
		</tr>
	);
}
