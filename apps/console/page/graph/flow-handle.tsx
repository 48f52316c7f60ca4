import { Handle, Position } from "@xyflow/react";
import { createContext, useContext } from "react";
import type { Direction } from "./layout.ts";

/** Where the arrows of a graph lead. */
export const ArrowDirection = createContext<Direction>("RIGHT");

/** Where the arrows of a node arrive, or leave. */
export function FlowHandle({ type }: { readonly type: "source" | "target" }) {
	const [before, after] =
		useContext(ArrowDirection) === "DOWN"
			? [Position.Top, Position.Bottom]
			: [Position.Left, Position.Right];
	return <Handle type={type} position={type === "target" ? before : after} isConnectable={false} />;
}
