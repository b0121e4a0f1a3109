-- One more verb: bring what lies on a pool of the host to the places that its own job files name. `job` then holds the pool's name.
ALTER TABLE poolferry.orders DROP CONSTRAINT orders_verb_check;
ALTER TABLE poolferry.orders ADD CONSTRAINT orders_verb_check
    CHECK (verb IN ('run', 'plan', 'pause', 'resume', 'verify', 'drill', 'evacuate'));
