import type { ReactNode } from "react";

/** A field with its label before it. */
export function Field({
	label,
	children,
}: {
	readonly label: string;
	readonly children: ReactNode;
}) {
	return (
		<span className="field">
			<span className="field-label" aria-hidden="true">
				{label}
			</span>
			{children}
		</span>
	);
}
