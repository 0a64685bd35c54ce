"""Box2D for one hull, two legs and the ground, in Box2D's own words.

A step of `b2World` has these parts, in this order:

1. `collision`: which edges of the ground a body touches (`b2ContactManager::Collide`).
   `broad_phase` finds the edges nearby, `manifold` the points of contact
   (`b2CollideEdgeAndPolygon`).
2. `island`: the velocity solver, integration, and the position solver (`b2Island::Solve`). They go
   over `joints` (`b2RevoluteJoint`) and `contacts` (`b2ContactSolver`) in turn.
3. `continuous`: a body that would pass through the ground is stopped at it (`b2World::SolveTOI`).
   `time_of_impact` and `distance` say when and where (`b2TimeOfImpact`, `b2Distance`).

`settings` has Box2D's constants (`b2Settings.h`), `shapes` the convex shapes and their masses.
"""
