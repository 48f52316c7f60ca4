import type {
	ServerOverview,
	StorageOverview,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { Card } from "../parts/card.tsx";
import { NumberHeadings } from "../parts/number-headings.tsx";
import { commitFigures, hasCommitFigures } from "./commit-figures.ts";

/** How long commits take, on each server and on all of them. Nothing if no server reports it. */
export function StorageCard({
	storage,
	servers,
}: {
	/** Of all servers. */
	readonly storage: StorageOverview | undefined;
	readonly servers: readonly ServerOverview[];
}) {
	if (storage === undefined || !hasCommitFigures(storage)) {
		return null;
	}
	return (
		<Card title="Storage" aside="commits of the last minute">
			<div className="scroll-x">
				<table>
					<thead>
						<tr>
							<th scope="col">Server</th>
							<NumberHeadings of={["Commits", "Median", "p99", "Per write"]} />
						</tr>
					</thead>
					<tbody>
						{servers.map((each) => (
							<StorageRow
								key={each.server?.name}
								name={each.server?.name ?? ""}
								storage={each.storage}
							/>
						))}
						{servers.length > 1 && <StorageRow name="all servers" storage={storage} />}
					</tbody>
				</table>
			</div>
		</Card>
	);
}

function StorageRow({
	name,
	storage,
}: {
	readonly name: string;
	/** Absent if the server has not responded. */
	readonly storage: StorageOverview | undefined;
}) {
	if (storage === undefined) {
		return (
			<tr>
				<td>{name}</td>
				<td colSpan={4} className="muted">
					no report
				</td>
			</tr>
		);
	}
	const { commits, median, p99, p99Tone, perWrite } = commitFigures(storage);
	return (
		<tr>
			<td>{name}</td>
			<td className="number">{commits}</td>
			<td className="number">{median}</td>
			<td className={p99Tone === "bad" ? "number bad-text" : "number"}>{p99}</td>
			<td className="number">{perWrite}</td>
		</tr>
	);
}
