import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
	LeaseKind,
	type LeaseOverview,
	type Overview,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { Link } from "@tanstack/react-router";
import { plural, shortDuration } from "../model/format.ts";
import { Age } from "../parts/age.tsx";
import { Card } from "../parts/card.tsx";
import { controllerOf, leaseUse } from "./lease-text.ts";

/** Who holds which lease. Nothing if no server reports any. */
export function LeasesCard({
	overview: { leases, leasesTotal, controllers, takenAt },
}: {
	readonly overview: Overview;
}) {
	if (leasesTotal === 0) {
		return null;
	}
	const names = new Set(controllers.map(({ controller }) => controller?.name ?? ""));
	const takenAtMs = takenAt === undefined ? 0 : timestampMs(takenAt);
	const leftOut = leasesTotal - leases.length;
	return (
		<Card title="Leases">
			<div className="scroll-x">
				<table>
					<thead>
						<tr>
							{["Lease", "For", "Held by", "Since"].map((each) => (
								<th key={each} scope="col">
									{each}
								</th>
							))}
						</tr>
					</thead>
					<tbody>
						{leases.map((each) => (
							<LeaseRow
								key={`${each.kind} ${each.server} ${each.name}`}
								lease={each}
								controllers={names}
								takenAtMs={takenAtMs}
							/>
						))}
					</tbody>
				</table>
			</div>
			{leftOut > 0 && <p className="muted">and {plural(leftOut, "other")}</p>}
		</Card>
	);
}

function LeaseRow({
	lease,
	controllers,
	takenAtMs,
}: {
	readonly lease: LeaseOverview;
	readonly controllers: ReadonlySet<string>;
	readonly takenAtMs: number;
}) {
	const { kind, name, server, holder, heldSince, expiresAt } = lease;
	const controller = controllerOf(lease, controllers);
	return (
		<tr>
			<td>
				{controller === undefined && name}
				{controller === "" && <Link to="/controllers">{name}</Link>}
				{controller !== undefined && controller !== "" && (
					<Link to="/controllers/$name" params={{ name: controller }}>
						{name}
					</Link>
				)}
			</td>
			<td className="muted">{leaseUse(lease)}</td>
			<td>
				{kind === LeaseKind.CLIENT ? (
					<code title={`The server ${server} has granted or renewed it.`}>{holder}</code>
				) : (
					server
				)}
			</td>
			<td>
				{heldSince === undefined ? "–" : <Age ms={timestampMs(heldSince)} />}
				{expiresAt !== undefined && (
					<span className="muted" title="It ends then, unless its holder renews it.">
						{`, for ${shortDuration(timestampMs(expiresAt) - takenAtMs)} more`}
					</span>
				)}
			</td>
		</tr>
	);
}
