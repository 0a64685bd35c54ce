"""Box2D for one hull, two legs and the ground."""
