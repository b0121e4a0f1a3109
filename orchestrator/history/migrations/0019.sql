-- Nothing changes here but the number: from now on a problem may be `unpruned`, of which older versions would say that it is damage.
SELECT 1;
