import { effectOf, obstaclesOf } from "@plinth/documents";
import {
	PlanDeletionResponse_Effect_Kind as Kind,
	type PlanDeletionResponse,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import type { Tone } from "../model/tone.ts";
import { Badge } from "../parts/badge.tsx";
import { KeyLink, keyText } from "./key-link.tsx";

/** So many effects are shown. */
const mostEffects = 200;

/** What a deletion would do to other resources, as a table. */
export function DeletionEffects({ plan }: { readonly plan: PlanDeletionResponse }) {
	const others = plan.effects.filter(({ level }) => level > 0);
	const notes = [
		...(others.length > mostEffects ? [`${others.length - mostEffects} more`] : []),
		...(plan.hidden > 0 ? [`${plan.hidden} more, which you may not read`] : []),
		...(plan.isPartial ? ["There is more than the server has examined."] : []),
	];
	return (
		<>
			{others.length > 0 && (
				<div className="scroll-x effects">
					<table>
						<thead>
							<tr>
								<th scope="col">Resource</th>
								<th scope="col">Effect</th>
								<th scope="col">Waits for</th>
							</tr>
						</thead>
						<tbody>
							{others.slice(0, mostEffects).map((effect) => (
								<tr key={keyText(effect.resource)}>
									<td>
										<KeyLink resource={effect.resource} />
									</td>
									<td>
										<Badge tone={toneOf(effect.kind)}>{effectOf(effect)}</Badge>
									</td>
									<td className="wraps">{obstaclesOf(effect).join(", ")}</td>
								</tr>
							))}
						</tbody>
					</table>
				</div>
			)}
			{notes.map((note) => (
				<p key={note} className="muted">
					{note}
				</p>
			))}
		</>
	);
}

function toneOf(kind: Kind): Tone {
	switch (kind) {
		case Kind.BLOCKS:
		case Kind.BLOCKED:
		case Kind.DELETED:
			return "bad";
		case Kind.WAITS:
			return "unsure";
		default:
			return "plain";
	}
}
