import type { ControllerOverview } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { Link } from "@tanstack/react-router";
import { count, rate } from "../model/format.ts";
import { Badge } from "../parts/badge.tsx";
import { Card } from "../parts/card.tsx";
import { NumberCell } from "../parts/number-cell.tsx";
import { NumberHeadings } from "../parts/number-headings.tsx";
import { controllersByAttention, phaseName, phaseTone } from "./attention.ts";

/** What is wrong comes first: a narrow window shows no more. */
const figures = ["Failing", "Failed/s", "Queued", "Scheduled", "In progress", "Done/s"] as const;

/** The controllers of all servers, those that need attention first. */
export function ControllersCard({
	controllers,
	title = "Controllers",
}: {
	readonly controllers: readonly ControllerOverview[];
	readonly title?: string;
}) {
	return (
		<Card title={title} wide>
			<div className="scroll-x">
				<table>
					<thead>
						<tr>
							<th scope="col">Controller</th>
							<th scope="col" className="secondary">
								Manages
							</th>
							<th scope="col">Phase</th>
							<NumberHeadings of={figures} />
						</tr>
					</thead>
					<tbody>
						{controllersByAttention(controllers).map((each) => (
							<ControllerRow key={each.controller?.name} overview={each} />
						))}
					</tbody>
				</table>
			</div>
		</Card>
	);
}

function ControllerRow({ overview }: { readonly overview: ControllerOverview }) {
	const { controller, reconcilesPerSecond, failuresPerSecond } = overview;
	if (controller === undefined) {
		return null;
	}
	const {
		live = 0,
		background = 0,
		delayed = 0,
		active = 0,
		failing = 0,
	} = controller.requests ?? {};
	return (
		<tr>
			<td>
				<Link to="/controllers/$name" params={{ name: controller.name }}>
					{controller.name}
				</Link>
			</td>
			<td className="muted secondary">{controller.manages}</td>
			<td>
				<Badge tone={phaseTone(controller.phase)}>{phaseName(controller.phase)}</Badge>
			</td>
			{failing > 0 ? (
				<td className="number">
					<Badge tone="bad">{count(failing)}</Badge>
				</td>
			) : (
				<NumberCell value={0} />
			)}
			<NumberCell value={failuresPerSecond} isBad format={rate} />
			<NumberCell value={live + background} />
			<NumberCell value={delayed} />
			<NumberCell value={active} />
			<NumberCell value={reconcilesPerSecond} format={rate} />
		</tr>
	);
}
