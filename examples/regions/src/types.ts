import { defineType } from "@plinth/resource";
import { DeviceSchema, RackSchema } from "./gen/regions/devices/v1/devices_pb.ts";
import { ProjectSchema } from "./gen/regions/iam/v1/iam_pb.ts";

/** The types of all services, for programs that use them. */
export const Project = defineType(ProjectSchema);
export const Rack = defineType(RackSchema);
export const Device = defineType(DeviceSchema);
